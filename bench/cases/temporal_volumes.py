"""An experiment: does a volume of the last eight frames tell light that flickers from what moves?

python -m foveate.bench.cases.temporal_volumes --out temporal_volumes.json

The volume holds luma at the analysis level, and is read at columns, rows and times. Two measures are made of it:
`light`, how much of the change in place a gain and an offset of each neighbourhood explain; and `path`, whether values
change along the product's flow as much as in place. Each takes what is no motion out of the product's `moving`; `light,
2 frames` sees only the frame before. `volume alone` takes what `light` leaves unexplained for motion. Ground truth is
of generated scenes; the thresholds were chosen on those of seed 11. Of pedestrians, the share of `moving` that is left.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import Clip
from foveate.bench.cases.motion_vectors import level_of
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame
from foveate.bench.clips.footage import CELL, Plane, read_footage
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.records.table import methods_table, standard_error
from foveate.bench.records.writing import clip_record, hand_out, origin
from foveate.bench.scenes.flicker import LAMPS, lamps
from foveate.bench.scenes.moving import Moment
from foveate.pipeline import open_stream
from foveate.pipeline.attributes.vocabulary import MOVING
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.flow import FlowSearch, grid_means
from foveate.pipeline.flow import Flow, warped
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.settings import CacheSettings, Settings

Map = NDArray[np.float32]
Mask = NDArray[np.bool_]

DEPTH: Final = 8
"""Frames in the volume."""
SCENES: Final[Mapping[str, Mapping[str, Any]]] = {
    "no flicker": {"flicker": 0.0},
    "lamps, 3%": {"flicker": 0.03},
    "lamps, 6%": {"flicker": 0.06},
    "lamps, 12%": {"flicker": 0.12},
    "lamps, 6%, noise": {"flicker": 0.06, "noise": 4.0},
    "room, 6%": {"flicker": 0.06, "room": True},
}
METHODS: Final = ("moving", "moving, light", "moving, light, 2 frames", "moving, path", "volume alone")
_LEVEL: Final = Settings().analysis_level
_LEAST: Final = 1.0  # mean square of a change that counts, in grey levels squared, at the analysis level
_WINDOW: Final = 12  # samples along a neighbourhood: three cells
_EXPLAINED: Final = 0.2  # share of the change that light may leave
_ALONG: Final = 0.5  # share of the change in place from which on the path does not explain it
_MOVES: Final = (1.5, 4.0)  # grey levels left unexplained with confidence 0 and 1
_SETTLED: Final = 20  # frames until the background is known and the volume full
_SURE: Final = 0.5


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


def alone(left: Map) -> Map:
    """Confidence that each cell moves, from what light does not explain: values of the Grid."""
    none, full = _MOVES
    change = np.sqrt(np.maximum(left - np.median(left), 0))
    return np.asarray(np.clip((change - none) / (full - none), 0, 1), np.float32)


def temporal_volumes(
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each scene.")] = 80,
    seed: Annotated[int, arg(metavar="N", help="What the scenes are drawn with.")] = 21,
) -> None:
    """Compare the attribute `moving` with and without a temporal volume, on generated scenes."""
    check_least(_SETTLED + 1, frames=frames)
    check_folders(out=out)
    record: dict[str, Any] = {**origin(), "command": "temporal_volumes", "cases": []}
    with TemporaryDirectory() as folder:
        for name in SCENES:
            record["cases"] += scene_cases(name, Path(folder), frames, seed)
    standard_error().print(methods_table("precision, recall, lamps", record["cases"], "scene", _shown))
    record["cases"].append(real_case("pedestrians", frames))
    hand_out(record, out)


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['precision']:.2f}, {case['recall']:.2f}, {case['lamps']:.2f}"


def scene_cases(name: str, folder: Path, frames: int, seed: int) -> list[dict[str, Any]]:
    """A case for each method: ``precision``, ``recall`` and ``lamps`` as ``scores`` has them.

    Costs in ms of processor time a frame: ``light_ms``, ``two_ms`` and ``path_ms``.
    """
    moments = list(lamps(frames, seed=seed, **SCENES[name]))
    clip = Clip(name, folder / f"{name}.mp4", f"generated: {name}, see scenes/flicker.py. Lossless x264.")
    encode(clip.path, (grey_frame(moment.luma) for moment in moments), Fraction(25), LOSSLESS)
    maps, costs = method_maps([moment.luma for moment in moments], product_moving(clip.path))
    about = {"scene": name, **costs, **clip_record(clip, frames)}
    return [{"name": f"{name}, {way}", "method": way, **scores(moments, maps[way])} | about for way in METHODS]


def real_case(name: str, frames: int) -> dict[str, Any]:
    """``kept``: of the cells of a sample that are `moving`, the share that each measure leaves so, and the costs.

    ``frame_ms``: processor time of a frame of the product with `moving`, decoding included.
    """
    (clip,) = sample_clips(name)
    lumas = [picture.luma for picture in read_footage(clip.path, frames).pictures]
    began = time.process_time()
    moving = product_moving(clip.path, frames)
    frame_ms = 1000 * (time.process_time() - began) / frames
    maps, costs = method_maps(lumas, moving)
    counts = {way: sum(int((values >= _SURE).sum()) for values in maps[way][_SETTLED:]) for way in METHODS}
    kept = {way: counts[way] / counts["moving"] for way in METHODS if way != "volume alone"}
    return {"name": name, "kept": kept, "frame_ms": frame_ms, **costs, **clip_record(clip, frames)}


def product_moving(file: Path, frames: int | None = None) -> list[Map]:
    """The attribute `moving` of each frame: float32[grid]."""
    name = f"{EMBEDDING}{MOVING}"
    with open_stream(str(file), query=["moving"], maps=(name,)) as stream:
        return [selection.maps[name] for selection in islice(stream, frames)]


def method_maps(lumas: Sequence[Plane], moving: Sequence[Map]) -> tuple[dict[str, list[Map]], dict[str, float]]:
    """The maps of every method, by frame, and the processor time of the two measures in ms a frame."""
    volume, search = Volume(), FlowSearch(CacheSettings().flow_level)
    maps: dict[str, list[Map]] = {method: [] for method in METHODS}
    spent = dict.fromkeys(("light_ms", "two_ms", "path_ms"), 0.0)
    for luma, own in zip(lumas, moving, strict=True):
        flow = search.search(level_of(luma, CacheSettings().flow_level), np.ones(own.shape, np.bool_)) or Flow(
            *np.zeros((3, *own.shape), np.float32)
        )
        began = time.process_time()
        volume.push(level_of(luma, _LEVEL).astype(np.float32))
        changes, left = (grid_means(each, CELL >> _LEVEL) for each in light(volume))
        middle = time.process_time()
        place, along = (grid_means(each, CELL >> _LEVEL) for each in path(volume, flow))
        ended = time.process_time()
        spent["light_ms"] += 1000 * (middle - began) / len(lumas)
        spent["path_ms"] += 1000 * (ended - middle) / len(lumas)
        two = [grid_means(each, CELL >> _LEVEL) for each in light(volume, 2)]
        spent["two_ms"] += 1000 * (time.process_time() - ended) / len(lumas)
        gates = without_light(own, changes, left), without_light(own, *two), without_still(own, place, along)
        found = own, *gates, alone(left)
        for method, values in zip(METHODS, found, strict=True):
            maps[method].append(values)
    return maps, spent


def scores(moments: Sequence[Moment], maps: Sequence[Map]) -> dict[str, Any]:
    """From frame 20 on, at a confidence of 0.5: ``precision``, ``recall``, and the share of ``lamps``' cells in it.

    Cells of which a thing covers less than half, and those that it has left in the last frames, count for nothing.
    """
    truths = [truth_of(moment, values.shape) for moment, values in zip(moments, maps, strict=True)]
    right = said = all_of_it = 0
    lit = lamp_cells(maps[0].shape)
    shares = []
    for index in range(_SETTLED, len(maps)):
        inside = truths[index][0]
        trail = np.logical_or.reduce([each[1] for each in truths[index - DEPTH + 1 : index + 1]])
        found = maps[index] >= _SURE
        right += int((found & inside).sum())
        said += int((found & (inside | ~trail)).sum())
        all_of_it += int(inside.sum())
        shares.append(float(found[lit].mean()))
    return {
        "precision": right / said if said else 1.0,
        "recall": right / all_of_it,
        "lamps": fmean(shares),
        "samples": {"lamps": shares},
    }


def truth_of(moment: Moment, grid: tuple[int, ...]) -> tuple[Mask, Mask]:
    """bool[grid] each: cells of which a thing covers at least half, and those that it touches."""
    covered = np.zeros((grid[0] * CELL, grid[1] * CELL), np.float32)
    for box in moment.boxes:
        covered[box.top : box.bottom, box.left : box.right] = 1
    share = grid_means(covered, CELL)
    return share >= 0.5, share > 0


def lamp_cells(grid: tuple[int, ...]) -> Mask:
    """bool[grid]: the cells of the lamps of scenes/flicker.py."""
    cells = np.zeros(grid, np.bool_)
    for left, top, right, bottom in LAMPS:
        cells[top // CELL : bottom // CELL, left // CELL : right // CELL] = True
    return cells


def _mean(values: Map) -> Map:
    """Mean over the neighbourhood of each sample."""
    return np.asarray(cv2.blur(values, (_WINDOW, _WINDOW), borderType=cv2.BORDER_REPLICATE), np.float32)


if __name__ == "__main__":
    run_module(temporal_volumes)
