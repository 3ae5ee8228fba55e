"""Whole frames at one stride."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.strides import methods, one_stride, patches_of, strides
from foveate.bench.clips.footage import Footage
from foveate.bench.entry import exit_code

Make = Callable[..., Footage]


@pytest.mark.parametrize("ratio", [4.0, 2.0, 1.0, 0.5, 0.25])
@pytest.mark.parametrize(("height", "width"), [(540, 960), (16, 4000), (1, 1), (2160, 333)])
@pytest.mark.parametrize("budget", [1, 273, 100_000])
def test_patches_are_within_the_budget_and_no_more_than_the_picture_has(
    ratio: float, height: int, width: int, budget: int
) -> None:
    rows, columns = patches_of(height, width, ratio, budget)
    assert 1 <= rows <= -(-height // 16)
    assert 1 <= columns <= -(-width // 16)
    assert rows * columns <= budget


def test_the_strides_are_in_the_ratio() -> None:
    for ratio in (4.0, 2.0, 1.0, 0.5):
        rows, columns = patches_of(1080, 1920, ratio, 1600)
        assert (1920 / columns) / (1080 / rows) == pytest.approx(ratio, rel=0.03)


def test_every_method_has_a_name_of_its_own() -> None:
    names = list(methods())
    assert len(names) == 3 + 2 + 2 * 5
    assert all(one != other for one, other in itertools.combinations(names, 2))


def test_a_ratio_of_four_keeps_rows_and_gives_up_columns(footage_of: Make) -> None:
    """Stripes of 2 pixels, 128 patches for 512 x 256: those that lie across come through, those that stand do not."""
    lying = np.repeat(np.arange(256) // 2 % 2 * 255, 512).reshape(256, 512).astype(np.uint8)
    standing = np.tile(np.arange(512) // 2 % 2 * 255, (256, 1)).astype(np.uint8)
    spread = []
    for luma in (lying, standing):
        (sent,) = one_stride(4.0, footage_of(luma), 128)
        assert sent.size == 16 * 8
        spread.append(float(sent.planes[0].std()))
    assert spread[0] == pytest.approx(127.5)
    assert spread[1] < 1


def test_psnr_of_the_sample_clips_needs_no_model(
    tmp_path: Path, tiny_clip: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pedestrians", "bunny"):
        (tmp_path / f"{name}.mp4").write_bytes(tiny_clip.read_bytes())
    monkeypatch.setattr("foveate.bench.clips.samples.sample_folder", lambda: tmp_path)
    out = tmp_path / "psnr.json"
    assert exit_code(strides, ["--psnr", "--frames", "2", "--budget", "9", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert {case["method"] for case in record["cases"]} == set(methods())
    assert "| tree, wide, stream | " in capsys.readouterr().err


def test_a_scene_that_is_not_there_is_refused_before_anything_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(strides, ["--scenes", "nope"]) == 2
    assert "--scenes must be among slides, scroll, captions, terminal, street, got 'nope'" in capsys.readouterr().err
