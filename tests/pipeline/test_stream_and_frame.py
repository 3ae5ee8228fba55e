"""A reader that keeps earlier tokens is no worse off than one that gets as many tokens anew.

Frame memory's tree covers the whole picture, so what it leaves does not depend on what a reader held before: the claim
about a clip is one about each frame, from the reader as it is. By the errors that the allocator is told, the tree for a
price leaves no more than any tree of as many tokens or fewer (Everett, "Generalized Lagrange multiplier method", 1963),
frame memory's among them; and no more than a larger one plus the price of each token that this has more. A budget that
is spent to the last token by the price alone is beyond comparison, then; elsewhere a few tokens' price may be lost.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from foveate.bench.clips.footage import read_footage
from foveate.bench.reader.painting import ReaderPicture, lods_of
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cascade.rate_distortion import RateDistortion
from foveate.pipeline.cpu import cascade as cpu_cascade
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.plan import plan_stream
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
    engine = CpuEngine(plan_stream(Settings(budget=budget, allocation=allocation, **_PLAIN)), Feedback())
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


def textured(random, height, width):
    grain = int(random.integers(3, 60))
    coarse = random.uniform(20, 235, (height // grain + 2, width // grain + 2)).astype(np.float32)
    smooth = cv2.INTER_CUBIC if random.random() < 0.5 else cv2.INTER_NEAREST
    return cv2.resize(coarse, (width, height), interpolation=smooth)


def made_up_clip(kind, seed):
    """Eight frames: a still picture, one that moves, a thing that does, a fade or a cut, all with noise."""
    random = np.random.default_rng(seed)
    height, width = int(random.integers(40, 300)), int(random.integers(40, 400))
    one, other = (textured(random, height + 40, width + 40) for _ in range(2))
    spread, shape = random.choice([0, 1, 4]), (-(-height // 2), -(-width // 2))
    for index in range(8):
        shift = 3 * index if kind == "pan" else 0
        share = {"fade": index / 7, "cut": float(index >= 4)}.get(kind, 0.0)
        ground = one[shift : shift + height, shift : shift + width]
        picture = ground + np.float32(share) * (other[:height, :width] - ground)
        if kind == "thing":
            picture[:40, 9 * index : 9 * index + 40] = other[:40, :40][: len(picture), : max(width - 9 * index, 0)]
        luma = np.clip(np.rint(picture + random.normal(0, spread, picture.shape)), 0, 255).astype(np.uint8)
        chroma = np.full(shape, 128, np.uint8)
        yield Frame(index, index / 25, luma, (chroma, chroma), Colour())


class Watched(RateDistortion):
    """Keeps the problems, and what it gave for them."""

    def __init__(self, min_gain, merge, solved):
        super().__init__(min_gain, merge)
        self._solved = solved

    def allocate(self, problem):
        tokens = super().allocate(problem)
        if problem.kept is not None:
            self._solved.append((replace(problem, kept=problem.kept.copy()), tokens, self.price))
        return tokens


def solved_in(frames, settings):
    """The problems of stream memory, of which the reader holds something, with the tokens and the price of each."""
    solved = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_cascade, "strategy", lambda chosen: Watched(chosen.min_gain, chosen.merge, solved))
        engine = CpuEngine(plan_stream(settings), Feedback())
        for _ in engine.cascade(engine.pyramid(engine.upload(frames))):
            pass
    return solved


def left_by(problem, tokens):
    """The weighted error that the reader is left with, by what the allocator is told of it."""
    left = problem.kept.astype(float)
    for lod, row, column in zip(*(values.tolist() for values in tokens), strict=True):
        under = np.s_[row << lod : (row + 1) << lod, column << lod : (column + 1) << lod]
        left[under] = problem.errors[lod - 1][under] if lod else 0.0
    return float((left * problem.weight).sum())


@examples(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["still", "pan", "thing", "fade", "cut"]),
    seed=st.integers(0, 2**32 - 1),
    budget=st.integers(9, 200),
    merge=st.sampled_from([1, 2, 3]),
    settings=st.sampled_from([{}, {"score": {"enabled": True}}, {"allocation": {"min_gain": 0.0}}]),
)
def test_from_the_same_reader_no_tree_of_frame_memory_leaves_less_for_its_tokens(kind, seed, budget, merge, settings):
    """Sums of float32 over some hundred cells: a hundred thousandth."""
    allocation = {"memory": "stream", "merge": merge, **settings.get("allocation", {})}
    chosen = Settings(budget=budget, **{**settings, "allocation": allocation})
    for problem, tokens, price in solved_in(made_up_clip(kind, seed), chosen):
        by_price = RateDistortion(price, merge)
        priced = by_price.allocate(problem)  # before what is left of the budget is spent
        anew = RateDistortion(chosen.allocation.min_gain, merge).allocate(replace(problem, kept=None))
        left, other = left_by(problem, tokens), left_by(problem, anew)
        slack = 1e-5 * (left + other) + 1e-3
        assert left <= left_by(problem, priced) + slack
        further = max(len(anew.lod) - len(priced.lod), 0) / merge**2  # groups, each of which has one price
        assert left <= other + by_price.price * further + slack
