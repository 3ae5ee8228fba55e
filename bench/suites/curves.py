"""Scaling curves of the CPU engine: what a frame costs by its size, the budget, what changed, queries and streams."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import cycle, islice
from statistics import fmean
from typing import Any, Final

import cv2
import numpy as np

from foveate.bench.case import Clip, RedCheckError, with_changes
from foveate.bench.records.jobs import Job
from foveate.bench.speed.cost import in_turns, on_cpu
from foveate.bench.suites.plan import Plan, read_frames
from foveate.pipeline.frames import Frame
from foveate.pipeline.geometry import TILE
from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import open_stream

HEIGHTS: Final = (180, 360, 540, 720, 1080, 2160)  # of 16:9
BUDGETS: Final = (32, 64, 128, 273, 546, 1092, 2184)
SHARES: Final = (0.0, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0)
QUERIES: Final = (0, 1, 2, 5, 10, 20, 50)
STREAMS: Final = (1, 2, 4, 8)
BASE_HEIGHT, QUICK_HEIGHT = 1080, 360  # of the picture on which anything but its size is varied
_MOST_PIXELS = 400_000_000  # of frames that are held at once
_WORDS: Final = (
    *("red", "blue moving", "small text", "green", "left", "dark large", "still", "white top", "pink", "grey"),
    *("yellow", "bright", "moving right", "brown", "black", "orange small", "purple", "bottom", "large", "centre"),
)
_STEP = 3  # grey levels that a changed tile moves beyond the threshold


def curve_jobs(plan: Plan) -> Iterator[Job]:
    """One job for each curve and memory: its points take turns."""
    clip = plan.clips[0]
    for memory in plan.memories:
        settings = on_cpu(with_changes(plan.settings, allocation={"memory": memory}))
        for name, curve in _CURVES.items():
            yield Job(f"{name}, {memory}", partial(_measured, name, memory, curve, settings, clip, plan))


Points = dict[float, tuple[Sequence[Frame], Settings]]
Curve = Callable[[Settings, Clip, Plan], Points]


def _measured(
    name: str, memory: str, curve: Curve | None, settings: Settings, clip: Clip, plan: Plan
) -> list[dict[str, Any]]:
    about = {"curve": name, "memory": memory, "clip": clip.name}
    if curve is None:
        return [_named(about, at, case) for at, case in _at_once(settings, clip, plan).items()]
    points = curve(settings, clip, plan)
    names = {str(at): at for at in points}
    costs = in_turns(
        {key: points[at][0] for key, at in names.items()},
        {key: points[at][1] for key, at in names.items()},
        plan.repeats,
    )
    return [_named(about, names[key], case) for key, case in costs.items()]


def _named(about: Mapping[str, str], at: float, case: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": f"{about['curve']} {at:.3g}, {about['memory']}", **about, "at": at, **case}


def frame_size(settings: Settings, clip: Clip, plan: Plan) -> Points:
    """By megapixels, the clip's frames enlarged or made smaller to 16:9."""
    heights = [height for height in HEIGHTS if not plan.quick or height <= 720]
    return {height * _width(height) / 1e6: (_sized(clip, height, plan.frames), settings) for height in heights}


def budget(settings: Settings, clip: Clip, plan: Plan) -> Points:
    """By tokens."""
    frames = _sized(clip, _height(plan), plan.frames)
    return {count: (frames, with_changes(settings, budget=count)) for count in BUDGETS}


def share_changed(settings: Settings, clip: Clip, plan: Plan) -> Points:
    """By the share of tiles that differ from frame to frame, the first tiles of the picture in reading order."""
    (first,) = _sized(clip, _height(plan), 1)
    change = {"keyframe_interval": 1_000_000, "cut_structure": 1.0, "noise": 0.0}  # flicker is no noise
    still = with_changes(settings, change=change)
    return {share: (_flickering(first, share, plan, settings), still) for share in SHARES}


def queries(settings: Settings, clip: Clip, plan: Plan) -> Points:
    """By the number of queries, of one or two words each."""
    frames = _sized(clip, _height(plan), plan.frames)
    words = [f"{word}:{weight}" for weight in (1, 2, 3) for word in _WORDS]
    return {count: (frames, with_changes(settings, query=words[:count])) for count in QUERIES}


_CURVES: Final[Mapping[str, Curve | None]] = {
    "frame size": frame_size,
    "budget": budget,
    "share changed": share_changed,
    "queries": queries,
    "streams": None,
}


def _at_once(settings: Settings, clip: Clip, plan: Plan) -> dict[float, dict[str, Any]]:
    """Whole pipelines over the file, decoding included, in turns: all frames per second, and processor time a frame."""
    samples: dict[int, list[tuple[float, float]]] = {count: [] for count in STREAMS}
    settings = with_changes(settings, source={"frames": plan.frames})
    for _ in range(plan.repeats):
        for count, taken in samples.items():
            taken.append(_together(settings, clip, count))
    return {
        count: {
            "pipeline_fps": fmean(fps for fps, _ in taken),
            "cpu_ms": min(cpu for _, cpu in taken),
            "samples": {"fps": [fps for fps, _ in taken], "cpu_ms": [cpu for _, cpu in taken]},
        }
        for count, taken in samples.items()
    }


def _together(settings: Settings, clip: Clip, count: int) -> tuple[float, float]:
    seen: list[int] = []

    def work() -> None:
        with open_stream(str(clip.path), settings) as stream:
            seen.append(sum(1 for _ in stream))

    threads = [threading.Thread(target=work) for _ in range(count)]
    wall, cpu = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if len(seen) != count or len(set(seen)) != 1:
        raise RedCheckError(f"{count} streams gave {seen} frames")
    return sum(seen) / wall, 1000 * cpu / sum(seen)


def _height(plan: Plan) -> int:
    return QUICK_HEIGHT if plan.quick else BASE_HEIGHT


def _width(height: int) -> int:
    return height * 16 // 9 // 2 * 2


def _sized(clip: Clip, height: int, count: int) -> list[Frame]:
    """The clip's first frames at ``height``, 16:9, as many as fit into the memory limit."""
    width = _width(height)
    count = min(count, max(4, _MOST_PIXELS // (width * height)))
    return [_resized(frame, width, height) for frame in read_frames(clip.path, count)]


def _resized(frame: Frame, width: int, height: int) -> Frame:
    half = (width // 2, height // 2)
    luma = np.asarray(cv2.resize(frame.luma, (width, height), interpolation=cv2.INTER_AREA), np.uint8)
    cb, cr = frame.chroma or (np.full((1, 1), 128, np.uint8),) * 2
    planes = [np.asarray(cv2.resize(plane, half, interpolation=cv2.INTER_AREA), np.uint8) for plane in (cb, cr)]
    return Frame(frame.index, frame.time, luma, (planes[0], planes[1]), frame.colour)


def _flickering(first: Frame, share: float, plan: Plan, settings: Settings) -> list[Frame]:
    """The frame alternating with one that differs in a share of its tiles."""
    rows, columns = (-(-side // TILE) for side in first.luma.shape)
    changed = np.arange(rows * columns).reshape(rows, columns) < round(share * rows * columns)
    area = changed.repeat(TILE, axis=0).repeat(TILE, axis=1)[: first.height, : first.width]
    step = int(settings.change.threshold) + _STEP
    moved = first.luma.astype(np.int16) + np.where(first.luma < 128, step, -step)
    second = np.where(area, moved, first.luma).astype(np.uint8)
    count = max(4, min(plan.frames, _MOST_PIXELS // first.luma.size))
    lumas = islice(cycle((first.luma, second)), count)
    return [Frame(index, index / 25, luma, first.chroma, first.colour) for index, luma in enumerate(lumas)]
