"""Files that stand in for cameras: the packets, their pace, and tokens equal to those of the file."""

import time
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.speed.paced import PacedFeed, camera_clip, open_paced
from foveate.pipeline import Selection, open_stream
from foveate.pipeline.settings import LiveSettings, Settings

FRAMES, RATE = 24, 30


@pytest.fixture
def clip(samples: Path, tmp_path: Path) -> Path:
    path = tmp_path / "camera.ts"
    camera_clip(samples / "pedestrians.mp4", path, (384, 288), FRAMES, RATE)
    return path


def test_timestamps_go_on_where_the_file_begins_again(clip: Path) -> None:
    settings = Settings(live=LiveSettings(policy="every"))
    with open_paced(partial(PacedFeed, clip, 300.0, 0.0), settings) as stream:
        assert (stream.info.width, stream.info.height, stream.info.codec) == (384, 288, "h264")
        begin = time.monotonic()
        got = list(islice(stream, 3 * FRAMES))
        assert time.monotonic() - begin > (3 * FRAMES - 10) / 300  # those that were decoded on opening came at once
    steps = [after.time - before.time for before, after in pairwise(got)]
    assert steps == pytest.approx([1 / RATE] * len(steps), abs=0.001)  # 90 kHz ticks
    assert [selection.index for selection in got] == list(range(3 * FRAMES))
    assert [selection.keyframe for selection in got].count("discontinuity") == 0


def same(mine: Selection, other: Selection) -> None:
    for name in ("x", "y", "lod", "score", "age"):
        assert np.array_equal(getattr(mine, name), getattr(other, name)), (mine.index, name)
    assert (mine.index, mine.keyframe, mine.changed) == (other.index, other.keyframe, other.changed)


def check_tokens(clip: Path, engine: str, memory: str) -> None:
    """Those of a camera are those of the file, where nothing is lost."""
    settings = Settings.model_validate(
        {"engine": engine, "budget": 100, "allocation": {"memory": memory}, "live": {"policy": "every"}}
    )
    with open_stream(str(clip), settings) as stream:
        expected = list(stream)
    with open_paced(partial(PacedFeed, clip, None, 0.0), settings) as stream:
        assert stream.info.decoded_on_cpu is None
        found = list(islice(stream, FRAMES))
        assert stream.damage.frames == 0
    assert len(expected) == FRAMES
    for mine, other in zip(found, expected, strict=True):
        same(mine, other)


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_tokens_are_those_of_the_file(clip: Path, memory: str) -> None:
    check_tokens(clip, "cpu", memory)
