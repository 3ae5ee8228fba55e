"""What tells light that flickers from what moves: the product's test, and volumes of the last frames.

python -m foveate.bench.cases.temporal_volumes --out temporal_volumes.json

`moving` is the product's attribute, which leaves out what a gain and an offset explain of the change from the previous
frame and from the background; in `light counts` it leaves out nothing. The others are experiments: a volume holds luma
of the last frames at the analysis level, and is read at columns, rows and times. Two measures of it take what is no
motion out of `light counts`: how much of the change in place a gain and an offset of each neighbourhood explain, for
volumes of eight, four and two frames; and `path`, whether values change along the product's flow as much as in place.
Ground truth is of generated scenes; the thresholds were chosen on those of seed 11. Of real clips, the share of `light
counts` that is left.
"""

import math
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final
from unittest.mock import patch

import cv2
import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import Clip
from foveate.bench.cases.motion_vectors import level_of
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame
from foveate.bench.clips.footage import CELL, Plane, read_footage
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.bench.scenes.light import COMPRESSED, SCENES
from foveate.bench.scenes.moving import Moment
from foveate.pipeline import open_stream
from foveate.pipeline.attributes.vocabulary import MOVING
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.flow import FlowSearch, grid_means
from foveate.pipeline.flow import Flow, warped
from foveate.pipeline.geometry import TILE, TOP_LEVEL
from foveate.pipeline.native.background import update_background
from foveate.pipeline.settings import CacheSettings, Settings
from foveate.pipeline.spec.light import UNEXPLAINED

Map = NDArray[np.float32]
Mask = NDArray[np.bool_]

DEPTH: Final = 8
"""Frames in the volume."""
VOLUMES: Final = {"8 frames": 8, "4 frames": 4, "2 frames": 2}
METHODS: Final = ("moving", "light counts", *VOLUMES, "path")
REAL: Final = ("pedestrians", "bunny", "tree")
_LEVEL: Final = Settings().analysis_level
_LEAST: Final = 1.0  # mean square of a change that counts, in grey levels squared, at the analysis level
_WINDOW: Final = 12  # samples along a neighbourhood: three cells
_EXPLAINED: Final = 0.2  # share of the change that light may leave
_ALONG: Final = 0.5  # share of the change in place from which on the path does not explain it
_SETTLED: Final = 20  # frames until the background is known and the volume full
_SURE: Final = 0.5
_TURNS: Final = 3
_COARSE: Final[Mapping[str, str]] = {"preset": "medium", "crf": "30", "g": "12"}  # a keyframe every twelve frames


class Volume:
    """The luma of the last ``DEPTH`` frames at the analysis level, as one 3-D layer."""

    def __init__(self) -> None:
        self._frames: list[Map] = []

    def push(self, luma: Map) -> None:
        """Add the newest frame, float32[h, w]."""
        self._frames = [luma, *self._frames[: DEPTH - 1]]

    def __len__(self) -> int:
        return len(self._frames)

    def sample(self, columns: Map, rows: Map, ago: float) -> Map:
        """Read trilinearly ``ago`` frames before the newest, at the centres of samples; the edge is repeated."""
        first = min(int(ago), len(self) - 1)
        share = np.float32(ago - first)
        near, far = (warped(self._frames[min(at, len(self) - 1)], columns, rows) for at in (first, first + 1))
        return np.asarray(near + share * (far - near), np.float32)

    def newest(self) -> Map:
        """The newest frame."""
        return self._frames[0]

    def earlier(self, frames: int = DEPTH) -> Sequence[Map]:
        """Those before it of the newest ``frames``, the latest first."""
        return self._frames[1:frames]


def light(volume: Volume, frames: int = DEPTH) -> tuple[Map, Map]:
    """Mean square change of each sample's neighbourhood against earlier frames, and what of it light does not explain.

    Light is a gain and an offset for each neighbourhood and frame, by least squares. float32[h, w] each.
    """
    now = volume.newest()
    mean, square = _mean(now), _mean(now * now)
    changes, left = np.zeros_like(now), np.zeros_like(now)
    earlier = volume.earlier(frames)
    for before in earlier:
        mean_before = _mean(before)
        variance = np.maximum(_mean(before * before) - mean_before**2, 0)
        covariance = _mean(now * before) - mean * mean_before
        changes += _mean((now - before) ** 2)
        left += np.maximum(square - mean**2 - covariance**2 / (variance + 1e-3), 0)
    count = np.float32(max(len(earlier), 1))
    return changes / count, left / count


def path(volume: Volume, flow: Flow) -> tuple[Map, Map]:
    """Mean square change of each sample's neighbourhood in place, and along the flow: float32[h, w] each."""
    now = volume.newest()
    indices = np.indices(now.shape, dtype=np.float32)
    rows, columns = indices[0], indices[1]
    side = 1 << (TOP_LEVEL - _LEVEL)
    dx, dy = (np.kron(part, np.full((side, side), side, np.float32)) for part in (flow.dx, flow.dy))
    place, along = np.zeros_like(now), np.zeros_like(now)
    for ago in range(1, len(volume)):
        place += _mean((now - volume.sample(columns, rows, ago)) ** 2)
        along += _mean((now - volume.sample(columns + ago * dx, rows + ago * dy, ago)) ** 2)
    count = np.float32(max(len(volume) - 1, 1))
    return place / count, along / count


def without_light(moving: Map, changes: Map, left: Map) -> Map:
    """``moving`` without the cells that change, but only by light: values of the Grid."""
    noise = np.median(left)
    lit = (changes > _LEAST + 2 * noise) & (left - noise < _EXPLAINED * changes)
    return np.where(lit, np.float32(0), moving)


def without_still(moving: Map, place: Map, along: Map) -> Map:
    """``moving`` without the cells that change along their flow about as much as in place: values of the Grid."""
    noise = np.median(along)
    flickers = (place > _LEAST + 2 * noise) & (along > _ALONG * place)
    return np.where(flickers, np.float32(0), moving)


def temporal_volumes(
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each scene.")] = 80,
    seed: Annotated[int, arg(metavar="N", help="What the scenes are drawn with.")] = 21,
) -> None:
    """Compare ways to tell light from motion in the attribute `moving`, on generated scenes and real clips."""
    check_least(_SETTLED + 1, frames=frames)
    record = new_record("temporal_volumes", out)
    with TemporaryDirectory() as folder:
        for name in SCENES:
            record["cases"] += scene_cases(name, Path(folder), frames, seed)
    say(methods_table("precision, recall", record["cases"], "scene", _shown))
    record["cases"] += [real_case(name, frames) for name in REAL]
    hand_out(record, out)


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['precision']:.2f}, {case['recall']:.2f}"


def scene_cases(name: str, folder: Path, frames: int, seed: int) -> list[dict[str, Any]]:
    """A case for each method: ``precision`` and ``recall`` as ``scores`` has them."""
    moments = list(SCENES[name](frames=frames, seed=seed))
    made = "x264, crf 30, a keyframe every 12 frames" if name in COMPRESSED else "Lossless x264"
    clip = Clip(name, folder / f"{name}.mp4", f"generated: {name}, see scenes/light.py. {made}.")
    options = _COARSE if name in COMPRESSED else LOSSLESS
    encode(clip.path, (grey_frame(moment.luma) for moment in moments), Fraction(25), options)
    maps, _ = method_maps(clip.path, frames)
    about = {"scene": name, **clip_record(clip, frames)}
    return [{"name": f"{name}, {way}", "method": way, **scores(moments, maps[way])} | about for way in METHODS]


def real_case(name: str, frames: int) -> dict[str, Any]:
    """``kept``: of the cells of a sample that move without a test of light, the share that each method leaves so.

    Costs in ms of processor time a frame: of each method, ``ms``, those of the product with decoding.
    """
    (clip,) = sample_clips(name)
    maps, costs = method_maps(clip.path, frames)
    before = [values >= _SURE for values in maps["light counts"][_SETTLED:]]
    kept = {
        way: sum(int((own & (values >= _SURE)).sum()) for own, values in zip(before, maps[way][_SETTLED:], strict=True))
        / sum(int(own.sum()) for own in before)
        for way in METHODS
    }
    return {"name": name, "kept": kept, "ms": costs, **clip_record(clip, frames)}


def product_moving(file: Path, frames: int | None = None, light_counts: bool = False) -> list[Map]:
    """The attribute `moving` of each frame: float32[grid]. ``light_counts``: changes of light are motion."""
    name = f"{EMBEDDING}{MOVING}"
    update = partial(update_background, unexplained=-math.inf if light_counts else UNEXPLAINED)
    with (
        patch("foveate.pipeline.cpu.background.update_background", update),
        open_stream(str(file), engine="cpu", query=["moving"], maps=(name,)) as stream,
    ):
        return [selection.maps[name] for selection in islice(stream, frames)]


def method_maps(file: Path, frames: int) -> tuple[dict[str, list[Map]], dict[str, float]]:
    """The maps of every method, by frame, and its processor time in ms a frame: the product's least of three."""
    maps: dict[str, list[Map]] = {method: [] for method in METHODS}
    spent = dict.fromkeys(METHODS, 0.0)
    for turn, method in product(range(_TURNS), METHODS[:2]):
        began = time.process_time()
        maps[method] = product_moving(file, frames, light_counts=method != "moving")
        took = time.process_time() - began
        spent[method] = min(spent[method], took) if turn else took
    volume, search = Volume(), FlowSearch(CacheSettings().flow_level)
    for picture, own in zip(read_footage(file, frames).pictures, maps["light counts"], strict=True):
        luma = _padded(picture.luma)
        flow = search.search(level_of(luma, CacheSettings().flow_level), np.ones(own.shape, np.bool_)) or Flow(
            *np.zeros((3, *own.shape), np.float32)
        )
        volume.push(level_of(luma, _LEVEL).astype(np.float32))
        for method in METHODS[2:]:
            began = time.process_time()
            if method == "path":
                found = without_still(own, *_reduced(path(volume, flow)))
            else:
                found = without_light(own, *_reduced(light(volume, VOLUMES[method])))
            spent[method] += time.process_time() - began
            maps[method].append(found)
    return maps, {method: 1000 * seconds / frames for method, seconds in spent.items()}


def _reduced(measures: Sequence[Map]) -> list[Map]:
    """Measures of samples as means over cells."""
    return [grid_means(each, CELL >> _LEVEL) for each in measures]


def _padded(luma: Plane) -> Plane:
    """Whole tiles, as the engine has them."""
    height, width = luma.shape
    return np.pad(luma, ((0, -height % TILE), (0, -width % TILE)), mode="edge")


def scores(moments: Sequence[Moment], maps: Sequence[Map]) -> dict[str, Any]:
    """From frame 20 on, at a confidence of 0.5: ``precision`` and ``recall``.

    Cells of which a thing covers less than half, and those that it has left in the last frames, count for nothing.
    ``samples``: by frame, the cells that are right, said to move, and of things.
    """
    truths = [truth_of(moment, values.shape) for moment, values in zip(moments, maps, strict=True)]
    counts = []
    for index in range(_SETTLED, len(maps)):
        inside = truths[index][0]
        trail = np.logical_or.reduce([each[1] for each in truths[index - DEPTH + 1 : index + 1]])
        found = maps[index] >= _SURE
        cells = found & inside, found & (inside | ~trail), inside
        counts.append([int(each.sum()) for each in cells])
    right, said, all_of_it = map(sum, zip(*counts, strict=True))
    return {
        "precision": right / said if said else 1.0,
        "recall": right / all_of_it,
        "samples": {"right, said, true": counts},
    }


def truth_of(moment: Moment, grid: tuple[int, ...]) -> tuple[Mask, Mask]:
    """bool[grid] each: cells of which a thing covers at least half, and those that it touches."""
    covered = np.zeros((grid[0] * CELL, grid[1] * CELL), np.float32)
    for box in moment.boxes:
        covered[box.top : box.bottom, box.left : box.right] = 1
    share = grid_means(covered, CELL)
    return share >= 0.5, share > 0


def _mean(values: Map) -> Map:
    """Mean over the neighbourhood of each sample."""
    return np.asarray(cv2.blur(values, (_WINDOW, _WINDOW), borderType=cv2.BORDER_REPLICATE), np.float32)


if __name__ == "__main__":
    run_module(temporal_volumes)
