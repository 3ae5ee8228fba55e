"""Random trials of the engines: a clip, settings and feedback on the way, all of one seed.

``TRIALS=5000 pytest -n 0 tests/pipeline/test_trials.py`` runs so many of them, those from seed FIRST_TRIAL on.
"""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.attributes.vocabulary import SYNONYMS
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.query.terms import QueryTerms
from foveate.pipeline.settings import Settings

Picture = NDArray[np.uint8]
SCENES = ("noise", "square", "still", "fade", "flash", "black", "pan", "crawl", "tint")
STRATEGIES = ("rate_distortion", "three_stage", "five_stage", "adaptive", "cluster_first", "foveated", "soft")
MAPS = ("score", "query", "query:red", *(channel.name for channel in CHANNELS), "rope_sin", "query_similarity")
FREE = [channel.name for channel in CHANNELS if channel.group not in ("cluster", "embedding", "colour")]  # to weigh
WEIGHABLE = [name for name in FREE if name != "text"] * 4 + [f"clip{index}" for index in range(16)] + ["red", "text"]


def seeds(few: int) -> range:
    """The trials to run: ``few``, unless the environment asks for others."""
    first = int(os.environ.get("FIRST_TRIAL", "0"))
    return range(first, first + int(os.environ.get("TRIALS", few)))


@dataclass(frozen=True)
class Event:
    """What is fed back after a frame."""

    kind: str  # "gaze", "budget", "interval", "query" or "attention"
    value: Any = None


@dataclass(frozen=True)
class Trial:
    """One of them."""

    seed: int
    settings: Settings
    frames: list[Frame]
    events: dict[int, Event]  # by the index of the frame after which they come

    def feed(self, feedback: Feedback, index: int, tokens: int) -> None:
        """Do what comes after frame ``index``, which got ``tokens``."""
        event = self.events.get(index)
        match event and event.kind:
            case "gaze":
                feedback.set_gaze(event.value)
            case "budget":
                feedback.set_budget(event.value)
            case "interval":
                feedback.keyframe_interval = event.value
            case "query":
                feedback.set_query(*event.value)
            case "attention":
                feedback.add_attention(index, np.random.default_rng(index).random(tokens).astype(np.float32))

    def most(self, index: int) -> int:
        """Most tokens that frame ``index`` may get."""
        budgets = [event.value for at, event in sorted(self.events.items()) if event.kind == "budget" and at < index]
        return self.settings.allocation.most(budgets[-1] if budgets else self.settings.rate)


def trial(seed: int, folder: Path) -> Trial:
    """The trial of a seed; ``folder`` takes the files that its settings name."""
    draw = Random(seed)
    frames = list(_frames(draw))
    settings = Settings.model_validate(_settings(draw, (frames[0].width, frames[0].height), folder / f"{seed}"))
    return Trial(seed, settings, frames, _events(draw, settings, frames))


def on_card(tried: Trial) -> Trial:
    """The same as far as both engines keep to it: with a query, cells on the card age on unchanged frames as well."""
    settings = tried.settings
    if not (settings.query or settings.keep_embeddings or settings.maps):
        return tried
    cache = settings.cache.model_copy(update={"max_age": 1000})
    return replace(tried, settings=settings.model_copy(update={"cache": cache}))


def _side(draw: Random) -> int:
    """Mostly a side of a few tiles, sometimes 1 pixel or many."""
    return draw.choice((1, 2, 15, 16, 17, 31, 32, 33, draw.randint(1, 64), *(draw.randint(32, 330),) * 8))


def _size(draw: Random) -> tuple[int, int]:
    """(width, height)."""
    if draw.random() < 0.1:
        thin = draw.randint(400, 1500), draw.randint(1, 40)
        return thin if draw.random() < 0.5 else thin[::-1]
    if draw.random() < 0.05:
        return draw.randint(330, 1300), draw.randint(330, 800)
    return _side(draw), _side(draw)


def _frames(draw: Random) -> Iterator[Frame]:
    rng = np.random.default_rng(draw.getrandbits(32))
    kind = draw.choice(("grey", "420", "420", "444"))
    colour = Colour(draw.choice(("bt601", "bt709", "bt2020")), draw.random() < 0.5)
    size, index, every = _size(draw), draw.choice((0, 0, 0, 7)), draw.choice((1, 1, 1, 2, 5))
    time, step = 0.0, draw.choice((1 / 25, 1 / 29.97, 1 / 240, 2.0))
    for number in range(draw.randint(1, 4)):
        if number and draw.random() < 0.15:
            size = _size(draw)
        discontinuity = bool(number) and draw.random() < 0.2
        picture = _texture(rng, size, draw.choice((0, 8, 60)))
        planes = picture, _texture(rng, size, 0), _texture(rng, size, 4)
        for moment, frame in enumerate(_scene(draw.choice(SCENES), planes, draw.randint(1, 6), rng)):
            luma, cb, cr = frame
            chroma = None if kind == "grey" else (cb, cr) if kind == "444" else (_half(cb), _half(cr))
            yield Frame(index, time, luma, chroma, colour, discontinuity and moment == 0)
            index, time = index + every, time + step * draw.choice((1, 1, 1, 1.5))


def _texture(rng: np.random.Generator, size: tuple[int, int], fine: int) -> Picture:
    width, height = size
    side = int(rng.choice([3, 9, 40]))
    coarse = rng.integers(16, 236, (height // side + 1, width // side + 1)).repeat(side, 0).repeat(side, 1)
    return np.clip(coarse[:height, :width] + rng.integers(-fine, fine + 1, (height, width)), 0, 255).astype(np.uint8)


def _half(plane: Picture) -> Picture:
    return np.ascontiguousarray(plane[::2, ::2])


def _scene(kind: str, planes: tuple[Picture, ...], count: int, rng: np.random.Generator) -> Iterator[Any]:
    luma, cb, cr = planes
    height, width = luma.shape
    for index in range(count):
        match kind:
            case "noise":
                luma = rng.integers(0, 256, luma.shape, np.uint8)
            case "square":
                luma, left = planes[0].copy(), int(7 * index % width)
                luma[height // 4 : height // 4 + 40, left : left + 40] = 255
            case "fade":
                luma = (planes[0] * (1 - index / count)).astype(np.uint8)
            case "flash":
                luma = np.full_like(luma, 255) if index == count // 2 else planes[0]
            case "black":
                luma, cb, cr = (np.full_like(plane, value) for plane, value in zip(planes, (0, 128, 128), strict=True))
            case "pan":
                luma, cb, cr = (np.roll(plane, (index, 3 * index), (0, 1)) for plane in planes)
            case "crawl":
                luma = np.clip(planes[0].astype(int) + index, 0, 255).astype(np.uint8)
            case "tint":
                cb = np.full_like(cb, min(255, 128 + 30 * index))
        yield np.ascontiguousarray(luma), np.ascontiguousarray(cb), np.ascontiguousarray(cr)


def _settings(draw: Random, size: tuple[int, int], name: Path) -> dict[str, Any]:
    allocation = _allocation(draw)
    merge = allocation["merge"]
    asks = draw.random() < 0.5
    settings: dict[str, Any] = {
        "engine": "cpu",
        "budget": _count(draw, merge**2),
        "query": [_phrase(draw) for _ in range(draw.randint(1, 3))] if asks else [],
        "query_lenient": True,
        "keep_embeddings": draw.random() < 0.3,
        "analysis_level": draw.choice((0, 1, 2, 2)),
        "maps": draw.sample(MAPS, draw.choice((0, 0, 1, 2))),
        "patches": draw.random() < 0.4,
        "allocation": allocation,
        "change": _change(draw),
        "cache": {
            "enabled": draw.random() < 0.8,
            "flow_level": draw.choice((2, 3)),
            "confidence": draw.choice((0.0, 0.5, 1.0)),
            "blend": draw.choice((0.0, 0.3, 0.99)),
            "max_age": draw.choice((1, 2, 30)),
        },
        "score": {
            "enabled": draw.choice((None, None, True, False)),
            "floor": draw.choice((0.05, 1e-6, 1.0)),
            "passes": draw.choice((1,) * 9 + (2,)),
        },
    }
    if draw.random() < 0.15:
        settings["score"] |= {"scorer": "linear", "weights": _weights(draw, name)}
    if draw.random() < 0.15 and allocation["strategy"] == "rate_distortion" and "budget_average" not in allocation:
        settings |= {"regions": _regions(draw, size, name), "region_tokens": _count(draw, 1)}
    return settings


def _count(draw: Random, least: int) -> int:
    """A number of tokens, small ones as often as large ones."""
    return max(least, round(math.exp(draw.uniform(0, math.log(1500)))))


def _allocation(draw: Random) -> dict[str, Any]:
    merge = draw.choice((1, 1, 2, 3))
    allocation = {
        "strategy": draw.choice(STRATEGIES + ("rate_distortion",) * 6),
        "memory": draw.choice(("frame", "stream")),
        "min_gain": draw.choice((64.0, 64.0, 0.0, 1e5)),
        "merge": merge,
        "interpolation": draw.choice(("bilinear", "bilinear", "bicubic")),
        "share": draw.choice((0.95, 0.02, 1.0)),
        "m0": draw.choice((None, None, 1e-4, 0.2, 1000.0)),
        "e0": draw.choice((0.05, 1e-6, 10.0)),
    }
    if allocation["memory"] == "stream" and allocation["strategy"] == "rate_distortion" and draw.random() < 0.3:
        allocation |= {"budget_average": _count(draw, merge**2), "burst": draw.choice((1.0, 4.0, 8.0))}
    return allocation


def _change(draw: Random) -> dict[str, Any]:
    return {
        "threshold": draw.choice((2.0, 2.0, 0.0, 20.0, 255.0)),
        "noise": draw.choice((1.5, 1.5, 0.0, 100.0)),
        "keyframe_interval": draw.choice((1, 2, 5, 30)),
        "keyframe_offset": draw.choice((0, 0, 3, 31)),
        "cut_share": draw.choice((0.5, 0.5, 1.0, 1e-3)),
        "cut_structure": draw.choice((0.35, 0.35, 1.0, 1e-3)),
    }


def _phrase(draw: Random) -> str:
    words = " ".join(draw.choice(draw.choice(SYNONYMS)) for _ in range(draw.choice((1, 1, 2))))
    return draw.choice(("", "", "-")) + words + draw.choice(("", "", ":0.5", ":0.01"))


def _weights(draw: Random, name: Path) -> str:
    """A file of weights of a linear scorer."""
    chosen = dict.fromkeys(draw.choice(WEIGHABLE) for _ in range(draw.randint(1, 5)))
    lines = [f"{channel} = {draw.uniform(-1, 1):.3f}" for channel in chosen]
    path = name.with_suffix(".toml")
    path.write_text("\n".join([f"bias = {draw.uniform(-0.2, 0.5):.3f}", "[weights]", *lines, ""]))
    return str(path)


def _regions(draw: Random, size: tuple[int, int], name: Path) -> str:
    """A file of boxes, some of which lie beside the picture."""
    lines = []
    for frame in sorted(draw.sample(range(20), draw.randint(1, 4))):
        boxes = []
        for number in range(draw.randint(0, 4)):
            left, top = (draw.uniform(-side, 1.2 * side) for side in size)
            box = {"name": str(number), "box": [left, top, *(draw.uniform(0, 1.5 * side) for side in size)]}
            boxes.append(box | ({"tokens": _count(draw, 1)} if draw.random() < 0.5 else {}))
        lines.append(json.dumps({"frame": frame, "regions": boxes}) + "\n")
    path = name.with_suffix(".jsonl")
    path.write_text("".join(lines))
    return str(path)


def _events(draw: Random, settings: Settings, frames: list[Frame]) -> dict[int, Event]:
    events = {}
    for frame in frames:
        if draw.random() < 0.2:
            events[frame.index] = _event(draw, settings, frame)
    return events


def _event(draw: Random, settings: Settings, frame: Frame) -> Event:
    match draw.choice(("gaze", "budget", "interval", "attention", *(["query"] if settings.query else []))):
        case "gaze":
            place = draw.uniform(-9, frame.width + 9), draw.uniform(-9, frame.height + 9)
            return Event("gaze", draw.choice((place, place, None)))
        case "budget":
            return Event("budget", _count(draw, settings.allocation.merge**2))
        case "interval":
            return Event("interval", draw.choice((1, 3, 30)))
        case "query":
            return Event("query", _query(draw))
    return Event("attention")


def _query(draw: Random) -> tuple[tuple[str, ...], QueryTerms | None, tuple[str, ...]]:
    from foveate.pipeline.attributes.encoder import AttributesEncoder
    from foveate.pipeline.relevance.stream_query import compile_queries

    phrases = tuple(_phrase(draw) for _ in range(draw.randint(0, 2)))
    compiled = compile_queries(AttributesEncoder(), phrases, lenient=True)
    return phrases, compiled.terms, compiled.ignored
