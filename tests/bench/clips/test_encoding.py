"""Clips that benchmarks write."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np
import pytest

from foveate.bench.clips.encoding import looped


def times(path: Path) -> list[float | None]:
    with av.open(str(path)) as container:
        return [frame.time for frame in container.decode(video=0)]


def test_a_looped_file_plays_again_and_again(samples: Path, tmp_path: Path) -> None:
    """All packets, and times that go on where they ended."""
    clip = tmp_path / "twice.mp4"
    once = looped(samples / "pedestrians.mp4", tmp_path / "once.mp4", 1)
    assert looped(samples / "pedestrians.mp4", clip, 2) == 2 * once
    found = times(clip)
    assert len(found) == 2 * once
    assert np.diff(np.array(found, np.float64)).min() > 0


def test_its_pictures_keep_their_pace(tiny_clip: Path, tmp_path: Path) -> None:
    count = looped(tiny_clip, tmp_path / "long.mp4", 3)
    assert times(tmp_path / "long.mp4") == pytest.approx([index / 25 for index in range(count)])
