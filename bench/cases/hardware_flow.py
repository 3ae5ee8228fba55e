"""An experiment: does the optical-flow engine of NVIDIA's cards follow better than the product's flow, and how fast?

python -m foveate.bench.cases.hardware_flow --out hardware_flow.json

Each frame is predicted from the one before, as in motion_vectors. The flows are none, those of both engines of the
product, of all cells (DIS on the CPU, and what the card's kernel computes, by its reference), and the engine's, on
pictures at full size, at a half and at a quarter, where each of its vectors is of one cell. Needs a card; where the
engine is missing or refuses, the record says so.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import pairwise
from typing import Annotated, Any, Final

import cv2
import numpy as np
from tyro.conf import Positional, arg

from foveate.bench.case import Clip
from foveate.bench.cases.motion_vectors import clips_to_predict, level_of, psnr, warped_cells
from foveate.bench.clips.footage import Plane, read_footage
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.gpu.launches import launch_times, percentiles
from foveate.bench.gpu.optical_flow import GRID, PRESETS, OpticalFlowEngine, Preset, cell_flow
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, method_cases, new_record
from foveate.cuda.cascade import flow_reference
from foveate.cuda.driver.device import Device, Stream
from foveate.pipeline.cpu.flow import FlowSearch
from foveate.pipeline.errors import EngineError
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import CELL, TOP_LEVEL
from foveate.pipeline.settings import CacheSettings

LEVELS: Final = (0, 1, 2)
_FLOW_LEVEL: Final = CacheSettings().flow_level
_ROUNDS: Final = 100

Flows = Iterator[Flow | None]
Way = Callable[[Sequence[Plane]], Flows]


def hardware_flow(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: samples and a pan.")] = (),
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
) -> None:
    """Compare the card's optical-flow engine with the product's flow: prediction error, and device time at 1080p."""
    check_least(2, frames=frames)
    record = new_record("hardware_flow", out)
    with Device() as device:
        record["card"] = device.name
        stream = device.stream()
        why = refusal(device, stream)
        if why is not None:
            record |= {"engine": False, "why": why}
            say(f"no optical flow by the card: {why}")
        else:
            record |= {"engine": True, "cases": quality(device, stream, files, frames)}
            say(methods_table("PSNR of cells, dB", record["cases"], "clip", lambda case: f"{case['psnr_grid']:.2f}"))
            for case in times(device, stream):
                record["cases"].append(case)
                say(f"{case['name']}: {case['p50_ms']:.3f} ms")
    hand_out(record, out)


def refusal(device: Device, stream: Stream) -> str | None:
    """Why the card's engine cannot be used, or None."""
    try:
        OpticalFlowEngine(device, stream, WIDTH, HEIGHT, "fast").close()
    except EngineError as error:
        return str(error)
    return None


def quality(device: Device, stream: Stream, files: Sequence[str], frames: int) -> list[dict[str, Any]]:
    """A case for each clip and flow: ``psnr_grid`` of the cells' means, warped as the product warps maps."""
    ways: Mapping[str, Way] = {
        "no flow": lambda lumas: (None for _ in lumas[1:]),
        "DIS": by_dis,
        "the card's search": by_search,
    }
    ways = {**ways, **{f"engine, {place(level)}": _by_engine(device, stream, level) for level in LEVELS}}
    cases = []
    with clips_to_predict(files, frames) as clips:
        for clip in clips:
            cases += clip_cases(clip, frames, ways)
    return cases


def place(level: int) -> str:
    """What a level is called."""
    return ("full size", "a half", "a quarter")[level]


def clip_cases(clip: Clip, frames: int, ways: Mapping[str, Way]) -> list[dict[str, Any]]:
    """The cases of one clip."""
    lumas = [picture.luma for picture in read_footage(clip.path, frames).pictures]
    found: dict[str, dict[str, Any]] = {}
    for name, way in ways.items():
        psnrs = [
            psnr(warped_cells(before, flow), level_of(now, TOP_LEVEL).astype(np.float32))
            for (before, now), flow in zip(pairwise(lumas), way(lumas), strict=True)
        ]
        found[name] = {"psnr_grid": float(np.mean(psnrs)), "samples": {"psnr_grid": psnrs}}
    return method_cases(clip, len(lumas), found)


def by_dis(lumas: Sequence[Plane]) -> Flows:
    """The CPU's search, in all cells."""
    search, pictures = FlowSearch(_FLOW_LEVEL), [level_of(luma, _FLOW_LEVEL) for luma in lumas]
    changed = np.ones(level_of(lumas[0], TOP_LEVEL).shape, np.bool_)
    search.observe(pictures[0])
    for picture in pictures[1:]:
        yield search.search(picture, changed)


def by_search(lumas: Sequence[Plane]) -> Flows:
    """The card's search, in all cells, by its reference."""
    levels = [[level_of(luma, level).astype(np.float32) for level in (TOP_LEVEL, _FLOW_LEVEL)] for luma in lumas]
    for (coarse, fine), (coarse_now, fine_now) in pairwise(levels):
        yield flow_reference.flow((coarse, coarse_now), (fine, fine_now), _FLOW_LEVEL)


def _by_engine(device: Device, stream: Stream, level: int, preset: Preset = "slow") -> Way:
    """The engine's, at its best."""

    def flows(lumas: Sequence[Plane]) -> Flows:
        pictures = [level_of(luma, level) for luma in lumas]
        with _engine(device, stream, pictures[0], preset) as engine:
            engine.upload(pictures[0])
            for picture in pictures[1:]:
                engine.upload(picture)
                engine.execute()
                yield cell_flow(engine.motion(), CELL // (GRID << level))

    return flows


def times(device: Device, stream: Stream) -> Iterator[dict[str, Any]]:
    """Device time of the engine's search in a picture of 1920x1080 that moves, at each level, with each preset."""
    whole = cv2.resize(read_footage(sample_clips("bunny")[0].path, 1).pictures[0].luma, (WIDTH, HEIGHT))
    for level in LEVELS:
        now, before = (level_of(np.roll(whole, shift, axis=1), level) for shift in (0, 8))
        for preset in PRESETS:
            with _engine(device, stream, now, preset) as engine:
                engine.upload(before)
                engine.upload(now)
                spent = launch_times(device, stream, lambda: None, engine.execute, _ROUNDS)
            name = f"1080p, {place(level)}, {preset}"
            yield {"name": name, "width": now.shape[1], "height": now.shape[0], **percentiles(spent)}


@contextmanager
def _engine(device: Device, stream: Stream, picture: Plane, preset: Preset) -> Iterator[OpticalFlowEngine]:
    height, width = picture.shape
    with closing(OpticalFlowEngine(device, stream, width, height, preset)) as engine:
        yield engine


if __name__ == "__main__":
    run_module(hardware_flow)
