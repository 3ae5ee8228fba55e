"""An experiment: are the motion vectors of an H.264 stream, which its decoder has anyway, a flow for nothing?

python -m foveate.bench.cases.motion_vectors --out motion_vectors.json

Each frame is predicted from the one before: pixels by moving whole cells along the flow, and the means of the cells by
warping them as the product warps its maps. The flows are none, the product's (DIS, at the default level and the finer
one), and the mean vector of each cell. The pan is generated, as the cameras of the samples hardly move sideways.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Literal

import av
import cv2
import numpy as np
from av.video.frame import PictureType
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.cases.probing import probed
from foveate.bench.clips.encoding import DEFAULT_QUALITY, encode, grey_frame
from foveate.bench.clips.footage import CELL, Plane, read_footage
from foveate.bench.clips.samples import SAMPLES, clips_of, sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, method_cases, new_record
from foveate.pipeline.cpu.flow import FlowSearch
from foveate.pipeline.flow import Flow, warped
from foveate.pipeline.geometry import TOP_LEVEL, Geometry
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.settings import CacheSettings

PAN: Final = (
    "generated: a view of 640x384 on a frame of bunny, moving 5 pixels right and 2 down a frame, noise of 1 level"
)
_PAN_SIZE: Final = (640, 384)
_PAN_STEP: Final = (5.0, 2.0)
_TURNS: Final = 9

Flows = Callable[[int], Flow | None]


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """What a decoder tells of one frame: its kind, and the record array of FFmpeg's AVMotionVector, None without."""

    kind: PictureType
    blocks: NDArray[Any] | None


def motion_vectors(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: samples and a pan.")] = (),
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
) -> None:
    """Compare the motion vectors of the stream with the product's flow, by prediction error and processor time."""
    check_least(2, frames=frames)
    record = new_record("motion_vectors", out)
    with clips_to_predict(files, frames) as clips:
        for clip in clips:
            record["cases"] += clip_flows(clip, frames)
    say(methods_table("PSNR, dB", record["cases"], "clip", _shown))
    hand_out(record, out)


@contextmanager
def clips_to_predict(files: Sequence[str], frames: int) -> Iterator[list[Clip]]:
    """The clips of ``files``; where none are named, the samples, and the pan, which is there within the context."""
    with TemporaryDirectory() as folder:
        clips = clips_of(files, *SAMPLES)
        yield clips if files else [*clips, pan_clip(Path(folder), frames)]


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['psnr']:.2f} ({case['psnr_grid']:.2f}), {case['cpu_ms']:.2f} ms"


def clip_flows(clip: Clip, frames: int) -> list[dict[str, Any]]:
    """A case for each flow: ``psnr``, the mean over the frames with vectors, and ``cpu_ms`` a frame.

    ``covered``: share of those frames' cells that have a vector; ``with_vectors``: share of frames that have any.
    Raises RedCheckError where a stream has no vectors.
    """
    lumas = [picture.luma for picture in read_footage(clip.path, frames).pictures]
    told = list(decoded_vectors(clip.path, frames))
    grid = -(-lumas[0].shape[0] // CELL), -(-lumas[0].shape[1] // CELL)
    held = [index for index, each in enumerate(told) if index and each.blocks is not None]
    if not held:
        raise RedCheckError(f"{clip.name}: the decoder gives no motion vectors; H.264 has them")
    steps = reference_steps([each.kind for each in told])
    of_codec = [cell_flow(each.blocks, step, grid) for each, step in zip(told, steps, strict=True)]
    eighth, quarter = (product_flows(clip.path, frames, level) for level in (3, 2))
    held = [index for index in held if index in eighth]
    costs = costs_of(clip.path, lumas, grid)
    ways: Mapping[str, tuple[Flows, float]] = {
        "no flow": (lambda _: None, 0.0),
        "DIS at an eighth": (eighth.get, costs["eighth_ms"]),
        "DIS at a quarter": (quarter.get, costs["quarter_ms"]),
        "motion vectors": (of_codec.__getitem__, costs["export_ms"] + costs["cells_ms"]),
    }
    about = {
        "with_vectors": fmean(each.blocks is not None for each in told),
        "covered": fmean(float(of_codec[index].confidence.mean()) for index in held),
        **costs,
    }
    found = {name: {**_quality(lumas, held, flows), "cpu_ms": cost, **about} for name, (flows, cost) in ways.items()}
    return method_cases(clip, len(lumas), found)


def decoded_vectors(path: Path, frames: int, export: bool = True) -> Iterator[Vectors]:
    """Decode the first frames in one thread; with ``export``, with motion vectors."""
    with av.open(f"file:{path}") as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        if export:
            stream.codec_context.options = {"flags2": "+export_mvs"}
        for frame in islice(container.decode(stream), frames):
            blocks = frame.side_data.get("MOTION_VECTORS") if export else None
            yield Vectors(PictureType(frame.pict_type), None if blocks is None else np.array(blocks.to_ndarray()))


def reference_steps(kinds: Sequence[PictureType]) -> list[tuple[int, int]]:
    """For each frame, how many frames back the last reference is, and how many ahead the next one; 1 where none is.

    References are taken to be the frames that are not B: a stream does not tell which frame a vector points to.
    """
    places = [index for index, kind in enumerate(kinds) if kind != PictureType.B]
    steps = []
    for index in range(len(kinds)):
        before = [index - place for place in places if place < index]
        after = [place - index for place in places if place > index]
        steps.append((min(before, default=1), min(after, default=1)))
    return steps


def cell_flow(blocks: NDArray[Any] | None, steps: tuple[int, int], grid: tuple[int, int]) -> Flow:
    """The mean vector of each cell, weighed by area, per frame. Without a vector: flow 0 and confidence 0.

    A vector points to a past frame (``source`` < 0) ``steps[0]`` back, or to one ``steps[1]`` ahead, which turns it.
    """
    sums = np.zeros((3, grid[0] * grid[1]))
    if blocks is not None:
        area = blocks["w"].astype(np.float64) * blocks["h"]
        inverse = np.where(blocks["source"] < 0, 1 / steps[0], -1 / steps[1]) / (blocks["motion_scale"] * CELL)
        rows, columns = (
            np.clip(blocks[name] // CELL, 0, most - 1) for name, most in zip(("dst_y", "dst_x"), grid, strict=True)
        )
        cells = rows * grid[1] + columns
        for place, values in enumerate((blocks["motion_x"] * inverse, blocks["motion_y"] * inverse, 1.0)):
            sums[place] = np.bincount(cells, area * values, grid[0] * grid[1])
    dx, dy = (each.reshape(grid).astype(np.float32) for each in sums[:2] / np.maximum(sums[2], 1e-9))
    return Flow(dx, dy, (sums[2] > 0).reshape(grid).astype(np.float32))


def predicted(before: Plane, flow: Flow | None) -> Plane:
    """The frame made from the one before by moving each cell along its flow, bilinearly."""
    if flow is None:
        return before
    rows, columns = np.indices(before.shape, dtype=np.float32)
    dx, dy = (
        np.kron(part, np.ones((CELL, CELL), np.float32))[: before.shape[0], : before.shape[1]] for part in flow[:2]
    )
    moved = cv2.remap(before, columns + dx * CELL, rows + dy * CELL, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(moved, np.uint8)


def costs_of(path: Path, lumas: Sequence[Plane], grid: tuple[int, int]) -> dict[str, float]:
    """Processor time per frame, in ms: of decoding, of exporting vectors besides, of making the flow of them, of DIS.

    Medians of turns, in which the sides alternate. DIS is given the pictures at its level.
    """
    kept = list(decoded_vectors(path, len(lumas)))
    sides: dict[str, Callable[[], object]] = {
        "decode": lambda: sum(1 for _ in decoded_vectors(path, len(lumas), export=False)),
        "exported": lambda: sum(1 for _ in decoded_vectors(path, len(lumas))),
        "cells": lambda: [cell_flow(each.blocks, (1, 1), grid) for each in kept],
        "eighth": partial(_search, [level_of(luma, 3) for luma in lumas], 3),
        "quarter": partial(_search, [level_of(luma, 2) for luma in lumas], 2),
    }
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(_TURNS):
        for name, side in sides.items():
            times[name].append(_cpu_ms(side) / len(lumas))
    middle = {name: median(values) for name, values in times.items()}
    return {f"{name}_ms": value for name, value in middle.items()} | {
        "export_ms": median(more - less for more, less in zip(times["exported"], times["decode"], strict=True))
    }


class _FlowRecorder:
    """An embedder that only keeps the flow of each frame that it gets, by the frame's number."""

    settled: Final = False

    def __init__(self, flows: dict[int, Flow], geometry: Geometry) -> None:
        self._flows = flows
        self._cells = -(-geometry.height // CELL), -(-geometry.width // CELL)

    def update(self, view: EmbedderInput) -> None:
        """Keep the flow, without the padding; on keyframes there is none."""
        if view.flow is not None:
            rows, columns = self._cells
            self._flows[view.frame.index] = Flow(*(part[:rows, :columns].copy() for part in view.flow))

    def close(self) -> None:
        """There is nothing to stop."""


def product_flows(path: Path, frames: int, level: Literal[2, 3]) -> dict[int, Flow]:
    """The flow of the product's frames by their numbers, but for keyframes and frames that did not change."""
    flows: dict[int, Flow] = {}
    probed(path, frames, partial(_FlowRecorder, flows), cache=CacheSettings(flow_level=level))
    return flows


def _search(pictures: Sequence[Plane], level: int) -> None:
    """The product's flow of every frame, in all cells."""
    search = FlowSearch(level)
    changed = np.ones([side >> (TOP_LEVEL - level) for side in pictures[0].shape], np.bool_)
    for picture in pictures:
        search.search(picture, changed)


def level_of(luma: Plane, level: int) -> Plane:
    """Box means of a luma padded to whole cells."""
    height, width = luma.shape
    padded = np.pad(luma, ((0, -height % CELL), (0, -width % CELL)), mode="edge")
    size = padded.shape[1] >> level, padded.shape[0] >> level
    return np.asarray(cv2.resize(padded, size, interpolation=cv2.INTER_AREA), np.uint8)


def _quality(lumas: Sequence[Plane], held: Sequence[int], flows: Flows) -> dict[str, Any]:
    """``psnr``: of the pixels, each cell moved as a whole; ``psnr_grid``: of the cells' means, warped as maps are."""
    pixels, cells = [], []
    for index in held:
        before, now, flow = lumas[index - 1], lumas[index], flows(index)
        pixels.append(psnr(predicted(before, flow), now))
        cells.append(psnr(warped_cells(before, flow), level_of(now, TOP_LEVEL).astype(np.float32)))
    return {
        "psnr": fmean(pixels),
        "psnr_least": min(pixels),
        "psnr_grid": fmean(cells),
        "samples": {"psnr": pixels, "psnr_grid": cells},
    }


def warped_cells(before: Plane, flow: Flow | None) -> NDArray[np.float32]:
    """The means of the cells of the frame before, warped along the flow over the Grid: float32[rows, columns]."""
    means = level_of(before, TOP_LEVEL).astype(np.float32)
    if flow is None:
        return means
    rows, columns = np.indices(means.shape, dtype=np.float32)
    return warped(means, columns + flow.dx, rows + flow.dy)


def psnr(one: NDArray[Any], other: NDArray[Any]) -> float:
    """PSNR in dB, at most 100."""
    error = float(np.mean((one.astype(np.float64) - other) ** 2))
    return min(10 * float(np.log10(255**2 / max(error, 1e-10))), 100.0)


def _cpu_ms(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return 1000 * (time.process_time() - began)


def pan_clip(folder: Path, frames: int) -> Clip:
    """A camera that pans over a frame of bunny, which turns back at its edges. Raises SinkError."""
    (source,) = sample_clips("bunny")
    whole = read_footage(source.path, 1).pictures[0].luma
    path = folder / "pan.mp4"
    encode(path, map(grey_frame, panned(whole, frames)), Fraction(25), DEFAULT_QUALITY)
    return Clip("pan", path, PAN)


def panned(whole: Plane, frames: int) -> Iterator[Plane]:
    """The views of the pan on ``whole``, uint8[384, 640]."""
    generator = np.random.default_rng(3)
    for index in range(frames):
        place = partial(_place, index)
        left, top = (
            place(step, most)
            for step, most in zip(_PAN_STEP, (whole.shape[1] - 640, whole.shape[0] - 384), strict=True)
        )
        shift = np.array([[1, 0, -left], [0, 1, -top]], np.float32)
        view = cv2.warpAffine(whole.astype(np.float32), shift, _PAN_SIZE, flags=cv2.INTER_LINEAR)
        yield np.clip(np.rint(view + generator.normal(0, 1, view.shape)), 0, 255).astype(np.uint8)


def _place(index: int, step: float, most: int) -> float:
    """Where the view is after ``index`` steps, to and fro between 0 and ``most``."""
    return most - abs((step * index) % (2 * most) - most)


if __name__ == "__main__":
    run_module(motion_vectors)
