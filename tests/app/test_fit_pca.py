"""``foveate fit-pca``: from pictures and videos to the file, and what it refuses."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

import foveate.app.fit_pca as command
import foveate.app.main as app
from foveate.pipeline.encoders.fit import check
from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.encoders.pca import load_projection
from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import ClipSettings


class Colours:
    """Stands for a model: the colour of each 16 x 16 part, scaled to 1."""

    id, dimension, resolution, sharpness = "colours", 3, 64, 10.0

    def encode_texts(self, texts: Sequence[str]) -> Any:
        return np.eye(3, dtype=np.float32)[[index % 3 for index in range(len(texts))]]

    def cuts(self, text: str) -> bool:
        return False

    def encode_image(self, rgb: Any, longest: int) -> Any:
        small = cv2.resize(rgb, (longest // 16, longest // 16), interpolation=cv2.INTER_AREA).astype(np.float32) + 1
        return small / np.linalg.norm(small, axis=-1, keepdims=True)


@pytest.fixture
def colours(monkeypatch: pytest.MonkeyPatch) -> Colours:
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install scikit-learn")
    encoder = Colours()
    monkeypatch.setattr(command, "open_model", lambda settings: encoder)
    return encoder


def test_videos_and_pictures_become_a_file(
    colours: Colours, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    still = tmp_path / "still.png"
    cv2.imwrite(str(still), np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8))
    out = tmp_path / "made.npz"
    arguments = ["fit-pca", str(samples / "tree.mp4"), str(still), "-o", str(out), "--components", "3", "--every", "10"]
    assert app.main(arguments) == 0
    said = capsys.readouterr()
    assert not said.out
    assert f"wrote {out}" in said.err
    assert "3 components of colours explain 100.0% of the variance" in said.err
    made = load_projection(out, "colours", 3)
    assert made.check["correlation"] > 0.999  # three components hold three numbers
    assert dict(made.check)["vectors"] >= 64


def test_how_many_pictures_are_taken(samples: Path) -> None:
    assert sum(1 for _ in command.pictures([str(samples / "tree.mp4")], every=10, most=4)) == 4
    assert sum(1 for _ in command.pictures([str(samples / "tree.mp4")] * 2, every=1, most=3)) == 6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "SOURCE is missing"),
        (["a.mp4", "-o", "x.txt"], "--out must end in .npz, got 'x.txt'"),
        (["a.mp4", "-o", "x.npz", "--components", "17"], "--components must be 1 to 16, got 17"),
        (["a.mp4", "-o", "x.npz", "--every", "0"], "--every must be at least 1, got 0"),
        (["a.mp4", "-o", "x.npz", "--device", "tpu"], "device"),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], colours: Colours
) -> None:
    arguments = arguments if "-o" in arguments else [*arguments, "-o", "x.npz"]
    assert app.main(["fit-pca", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_what_cannot_be_read_or_written_is_one_line(
    colours: Colours, samples: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main(["fit-pca", str(tmp_path / "absent.mp4"), "-o", str(tmp_path / "x.npz")]) == 1
    assert "absent.mp4" in capsys.readouterr().err
    target = str(tmp_path / "no" / "x.npz")
    assert app.main(["fit-pca", str(samples / "tree.mp4"), "--components", "3", "--every", "10", "-o", target]) == 1
    assert f"cannot write {target}" in capsys.readouterr().err
    with pytest.raises(SourceError, match=r"too\.mp4"):
        next(command.pictures([str(tmp_path / "too.mp4")], 1, 1))


def test_nothing_is_encoded_where_the_last_source_or_the_file_would_fail(
    colours: Colours,
    samples: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("an hour's work")

    monkeypatch.setattr(colours, "encode_image", never, raising=False)
    clip, fine = str(samples / "tree.mp4"), str(tmp_path / "x.npz")
    directory = tmp_path / "directory.npz"
    directory.mkdir()
    for sources, out, said in (
        ([clip, str(tmp_path / "absent.mp4")], fine, "absent.mp4"),
        ([clip], str(tmp_path / "no" / "x.npz"), "cannot write"),
        ([clip], str(directory), "it is a directory"),
    ):
        assert app.main(["fit-pca", *sources, "--components", "3", "-o", out]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert [path.name for path in tmp_path.iterdir()] == ["directory.npz"]


def test_a_file_that_is_there_stays_until_the_new_one_is_whole(
    colours: Colours, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "made.npz"
    out.write_bytes(b"of last year")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    arguments = ["fit-pca", str(samples / "tree.mp4"), "-o", str(out), "--components", "3", "--every", "10"]
    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full)
        assert app.main(arguments) == 1
    assert out.read_bytes() == b"of last year"
    assert app.main(arguments) == 0
    assert load_projection(out, "colours", 3).encoder == "colours"


def test_a_planted_model_is_fitted_and_fits(planted: SimpleNamespace, samples: Path, tmp_path: Path) -> None:
    """Needs torch and open_clip: ``pip install -e '.[clip]'``."""
    out = tmp_path / "made.npz"
    model = ["--model", planted.folder, "--weights", planted.weights, "--device", "cpu"]
    sources = [str(samples / name) for name in ("bunny.mp4", "tree.mp4")]
    assert app.main(["fit-pca", *sources, *model, "--most", "8", "-o", str(out)]) == 0
    encoder = open_model(ClipSettings(model=planted.folder, weights=planted.weights, device="cpu"))
    made = load_projection(out, encoder.id, 24)
    picture = next(command.pictures([str(samples / "pedestrians.mp4")], 1, 1))
    vectors = encoder.encode_image(picture, 256).reshape(-1, 24)
    found = check(made, vectors, encoder.encode_texts(["red", "green", "blue", "object"]))
    assert found["correlation"] > 0.999  # the planted vectors span four dimensions of 24
    assert found["top_agreement"] > 0.98
