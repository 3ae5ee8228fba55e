"""The callable for pipelines of one's own."""

from pathlib import Path

import numpy as np

from foveate.pipeline.corpus.ray_data import FrameRows
from foveate.pipeline.stream import open_stream

FEW = {"frames": 2}


def test_rows_of_a_path_and_of_bytes(samples: Path) -> None:
    clip = samples / "tree.mp4"
    with open_stream(clip, budget=20, source=FEW) as stream:
        expected = list(stream)
    rows = FrameRows(budget=20, source=FEW)
    for row in ({"path": str(clip)}, {"path": str(clip), "bytes": clip.read_bytes()}):
        found = rows(row)
        assert [each["video"] for each in found] == [str(clip)] * 2
        for each, selection in zip(found, expected, strict=True):
            np.testing.assert_array_equal(each["x"], selection.x)
            assert (each["index"], each["time"]) == (selection.index, selection.time)
