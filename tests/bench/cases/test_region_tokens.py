"""PSNR inside boxes."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.case import Clip
from foveate.bench.cases.region_tokens import clip_regions, lines_of, pixels_in, read_boxes, region_tokens
from foveate.bench.clips.footage import Footage
from foveate.bench.entry import exit_code
from foveate.pipeline.errors import SettingsError

Make = Callable[..., Footage]


def test_boxes_are_read_by_frame(tmp_path: Path) -> None:
    file = tmp_path / "boxes.txt"
    file.write_text("# made up\n3 1 2 30 40\n3 5 6 7 8\n9 0 0 1 1\n")
    boxes = read_boxes(file)
    assert boxes == {3: [[1, 2, 30, 40], [5, 6, 7, 8]], 9: [[0, 0, 1, 1]]}
    assert [(line["frame"], len(line["regions"])) for line in lines_of(boxes)] == [(3, 2), (4, 0), (9, 1), (10, 0)]
    for text in ("", "1 2 3\n", "a b c d e\n"):
        file.write_text(text)
        with pytest.raises(SettingsError, match=r"BOXES: .*boxes\.txt"):
            read_boxes(file)
    with pytest.raises(SettingsError, match="cannot be read"):
        read_boxes(tmp_path / "none.txt")


def test_pixels_in_boxes() -> None:
    inside = pixels_in([(1, 2, 3, 2), (3, 3, 9, 9), (-2, 0, 3, 1)], (5, 6))
    wanted = ["x.....", "......", ".xxx..", ".xxxxx", "...xxx"]
    assert inside.tolist() == [[each == "x" for each in row] for row in wanted]


def test_regions_show_their_boxes_best(tiny_clip: Path) -> None:
    boxes = {2: [[10, 10, 40, 40]], 5: [[30, 5, 20, 50]]}
    cases = clip_regions(Clip("tiny", tiny_clip), boxes, "moving", 4)
    assert len({case["name"] for case in cases}) == 3
    regions, whole, _ = cases
    assert all(count <= 4 for count in regions["samples"]["tokens"])
    for one, other in zip(regions["samples"]["tokens"], whole["samples"]["tokens"], strict=True):
        assert other <= one
    assert regions["psnr"] > whole["psnr"]
    assert np.isfinite([case["psnr"] for case in cases]).all()


def test_the_command_writes_a_record(tmp_path: Path, tiny_clip: Path) -> None:
    (tmp_path / "boxes.txt").write_text("1 0 0 30 30\n")
    out = tmp_path / "record.json"
    words = [str(tmp_path / "boxes.txt"), str(tiny_clip), "--tokens", "3", "--out", str(out)]
    assert exit_code(region_tokens, words) == 0
    record = json.loads(out.read_text())
    assert [case["region_tokens"] for case in record["cases"]] == [3, 3, 3]
    assert not record["red"]
