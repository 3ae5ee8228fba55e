"""Inputs of a vision-language model: all patches of a video's frames, or groups of patches chosen in various ways.

A group is merge x merge patches, one language-model token. The budget counts those of each frame.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import av
import numpy as np
from numpy.typing import NDArray

from foveate.bench.cases.questions import Question
from foveate.pipeline.attributes.vocabulary import queries_in
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.stream import open_stream
from foveate.pipeline.vlm.pictures import pictures_of

ALL: Final = "all patches"
FOVEATE: Final = {"Foveate, LOD 0": "three_stage", "Foveate, mixed": "rate_distortion"}
"""Strategies by the methods' names: the first chooses cells at full resolution only."""
PEERS: Final = ("downscale", "uniform", "random")
_SEED: Final = 0


class Method(NamedTuple):
    """A way to choose, and the language-model tokens per frame; None: all of them."""

    name: str
    budget: int | None


def methods_of(budgets: Sequence[int]) -> list[Method]:
    """All patches, then every other way at every budget."""
    return [Method(ALL, None), *(Method(name, budget) for budget in budgets for name in (*PEERS, *FOVEATE))]


class Frames:
    """The frames sampled for one question, the same for every method."""

    def __init__(self, question: Question, fps: float, frames: int, merge: int) -> None:
        """At most ``frames``, at ``fps`` or a lower rate that spreads them over the part that is asked about."""
        self.question, self.merge = question, merge
        self._source = {
            "start": question.start, "end": question.end, "frames": frames, "fps": _rate(question, fps, frames),
        }  # fmt: skip
        with open_stream(question.video, **self._settings(merge * merge)) as stream:
            self._pictures = [(stream.frame.rgb(), each) for each in stream if stream.frame is not None]
        self._wholes = [whole(rgb, each, merge) for rgb, each in self._pictures]

    def inputs(self, method: Method) -> list[Selection]:
        """The tokens of each frame that the model reads, by a method."""
        name, budget = method
        if budget is None:
            return self._wholes
        if name in FOVEATE:
            return self._chosen(FOVEATE[name], budget)
        if name == "downscale":
            return [_smaller(rgb, each, budget, self.merge) for rgb, each in self._pictures]
        return [_picked(name, each, budget, self.merge) for each in self._wholes]

    def _chosen(self, strategy: str, budget: int) -> list[Selection]:
        settings = self._settings(budget * self.merge**2)
        settings["allocation"] |= {"strategy": strategy}
        with open_stream(self.question.video, query=queries_in(self.question.text), **settings) as stream:
            return list(stream)

    def _settings(self, budget: int) -> dict[str, Any]:
        allocation = {"merge": self.merge}
        return {"budget": budget, "patches": True, "allocation": allocation, "source": self._source}


def whole(rgb: NDArray[np.uint8], like: Selection, merge: int) -> Selection:
    """All groups of a picture at its full resolution, with the time of ``like``.

    Tokens wholly outside the picture repeat their neighbours in the group, as in every Selection.
    """
    height, width, _ = rgb.shape
    rows, columns = -(-height // PATCH), -(-width // PATCH)
    down, right = -(-rows // merge), -(-columns // merge)
    row, column, part = np.indices((down, right, merge * merge), np.int32).reshape(3, -1)
    row = np.minimum(merge * row + part // merge, rows - 1)
    column = np.minimum(merge * column + part % merge, columns - 1)
    padded = np.pad(rgb, ((0, rows * PATCH - height), (0, columns * PATCH - width), (0, 0)), mode="edge")
    patches = padded.reshape(rows, PATCH, columns, PATCH, 3).swapaxes(1, 2)[row, column]
    some = np.zeros(len(row), np.float32)
    return Selection(
        like.index, like.time, width, height, like.keyframe, 1.0, 1.0, PATCH * column + PATCH // 2,
        PATCH * row + PATCH // 2, np.zeros(len(row), np.uint8), some, some, some, None, np.zeros(len(row), np.int32),
        np.ones(len(row), np.bool_), patches,
    )  # fmt: skip


def _smaller(rgb: NDArray[np.uint8], like: Selection, budget: int, merge: int) -> Selection:
    """The whole picture, scaled down to at most ``budget`` groups."""
    picture, *_ = pictures_of(replace(like, participation=None), budget, rgb, pixels_per_token=(PATCH * merge) ** 2)
    return whole(picture.rgb, like, merge)


def _picked(name: str, frame: Selection, budget: int, merge: int) -> Selection:
    """Every (G / K)-th of G groups, or K drawn afresh for each frame, seeded."""
    groups = len(frame) // merge**2
    kept = min(budget, groups)
    if name == "uniform":
        return _part(frame, np.arange(kept) * groups // kept, merge)
    drawn = np.random.default_rng([_SEED, frame.index]).permutation(groups)[:kept]
    return _part(frame, np.sort(drawn), merge)


def _part(frame: Selection, groups: NDArray[np.integer], merge: int) -> Selection:
    """Some groups of a Selection of ``whole``."""
    assert frame.patches is not None
    kept = (groups[:, None] * merge**2 + np.arange(merge**2)).ravel()
    names = ("x", "y", "lod", "score", "information", "perspective", "age", "fresh", "patches")
    return replace(frame, **{name: getattr(frame, name)[kept] for name in names})


def _rate(question: Question, fps: float, frames: int) -> float:
    """Frames per second."""
    with av.open(f"file:{question.video}") as container:
        length = (container.duration or 0) / av.time_base
    seconds = (length if question.end is None else min(question.end, length)) - (question.start or 0.0)
    return min(fps, frames / seconds) if seconds > 0 else fps
