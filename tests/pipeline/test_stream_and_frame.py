"""On real clips, a reader that keeps earlier tokens is never worse off than one that gets as many tokens anew."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from foveate.bench.footage import read_footage
from foveate.bench.painting import ReaderPicture, lods_of
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.settings import Settings

SAMPLES = Path(__file__).parents[2] / "sample_videos"
FRAMES = 12
_PLAIN = {"score": {"enabled": False}, "change": {"threshold": 0.0, "noise": 0.0}}  # tokens show the very frame


@cache
def frames_of(name):
    pictures = read_footage(SAMPLES / f"{name}.mp4", FRAMES).pictures
    return [Frame(at, at / 25, shot.luma, (shot.cb, shot.cr), Colour()) for at, shot in enumerate(pictures)]


def errors(frames, memory, budget):
    """The squared error that the reader is left with, by frame; a sample of halved chroma counts as one of luma."""
    allocation = {"memory": memory, "min_gain": 0.0}
    engine = CpuEngine(Settings(budget=budget, allocation=allocation, **_PLAIN), Feedback(), None)
    reader = ReaderPicture([plane.shape for plane in (frames[0].luma, *frames[0].chroma)])
    for step, frame in zip(engine.cascade(engine.pyramid(engine.upload(iter(frames)))), frames, strict=True):
        planes = (frame.luma, *frame.chroma)
        reader.paint(planes, lods_of(step.selection))
        yield sum(
            float(((held - true.astype(float)) ** 2).sum()) for held, true in zip(reader.planes, planes, strict=True)
        )


@pytest.mark.parametrize("name", ["pedestrians", "bunny", "tree"])
@examples(max_examples=6, deadline=None)
@given(budget=st.integers(40, 300))
def test_stream_memory_is_never_worse_than_frame_memory(name, budget):
    frames = frames_of(name)
    kept, anew = errors(frames, "stream", budget), errors(frames, "frame", budget)
    assert all(one <= other for one, other in zip(kept, anew, strict=True))
