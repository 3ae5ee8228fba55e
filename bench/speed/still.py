"""Time per frame after decoding: keyframes against frames on which nothing changed."""

import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Self

from foveate.bench.case import Case
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.engine import Engine, open_engine
from foveate.pipeline.frames import Frame, Source
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks import Sink, open_sink
from foveate.pipeline.sources import open_source

STAGES: Final = ("upload", "pyramid", "cascade", "output")
_FEWEST = 10  # still frames, and 2 keyframes: the first one also pays for the memory it allocates

Times = tuple[float, ...]  # seconds per stage, in the order of STAGES


def enough_still(still_frames: int, keyframes: int) -> bool:
    """True where a clip has the frames that ``frame_costs`` compares."""
    return still_frames >= _FEWEST and keyframes >= 2


def frame_costs(case: Case) -> dict[str, Any]:
    """Mean milliseconds per keyframe but the first and per still frame, over all stages behind Decode.

    One thread drives the stages one frame at a time, so that none waits for another. ``keyframe_ms`` and
    ``still_frame_ms`` are wall-clock time, the ``_cpu_`` ones that thread's processor time; ``still_share`` is
    ``still_frame_ms`` / ``keyframe_ms``.
    """
    wall: dict[str, list[Times]] = {"keyframe": [], "still_frame": []}
    cpu: dict[str, list[Times]] = {"keyframe": [], "still_frame": []}
    source = open_source(str(case.clip.path), case.settings.source)
    try:
        with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
            _drive(case, source, open_sink(str(Path(folder) / "tokens.jsonl")), wall, cpu)
    finally:
        source.close()
    return _summary(wall, cpu)


def _drive(case: Case, source: Source, sink: Sink, wall: dict[str, list[Times]], cpu: dict[str, list[Times]]) -> None:
    info = source.info
    sink.open(Header(info.name, info.width, info.height, info.fps, {}))
    try:
        stepper = _Stepper(open_engine(plan_stream(case.settings), Feedback()), sink)
        for frame in source:
            selection, seconds, cpu_seconds = stepper.step(frame)
            kind = _kind(selection)
            if kind is not None:
                wall[kind].append(seconds)
                cpu[kind].append(cpu_seconds)
    finally:
        sink.close()


def _kind(selection: Selection) -> str | None:
    if selection.keyframe is not None:
        return "keyframe" if selection.index else None
    return "still_frame" if selection.changed == 0 else None


def _summary(wall: dict[str, list[Times]], cpu: dict[str, list[Times]]) -> dict[str, Any]:
    def mean_ms(times: list[Times]) -> float:
        return 1000 * fmean(map(sum, times))

    record: dict[str, Any] = {f"{kind}_ms": mean_ms(times) for kind, times in wall.items()}
    record["still_share"] = record["still_frame_ms"] / record["keyframe_ms"]
    record |= {f"{kind}_cpu_ms": mean_ms(times) for kind, times in cpu.items()}
    record["frame_costs"] = {kind: _by_stage(times) for kind, times in wall.items()}
    return record


def _by_stage(times: list[Times]) -> dict[str, Any]:
    columns = zip(STAGES, zip(*times, strict=True), strict=True)
    samples = [1000 * sum(frame) for frame in times]
    return {f"{stage}_ms": 1000 * fmean(seconds) for stage, seconds in columns} | {"samples_ms": samples}


class _Slot:
    """An upstream that yields what was put into it last."""

    def __init__(self) -> None:
        self.item: Any = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        item, self.item = self.item, None
        assert item is not None, "a stage asked for more than one item per item"
        return item


class _Stepper:
    """Sends one frame at a time through an engine's stages and a sink."""

    def __init__(self, engine: Engine, sink: Sink) -> None:
        self._slots = [_Slot() for _ in range(3)]
        bodies = (engine.upload, engine.pyramid, engine.cascade)
        self._stages: list[Iterator[Any]] = [body(slot) for body, slot in zip(bodies, self._slots, strict=True)]
        self._sink = sink

    def step(self, frame: Frame) -> tuple[Selection, Times, Times]:
        """The frame's Selection, and the wall-clock and processor time of each stage."""
        item: Any = frame
        wall, cpu = [time.perf_counter()], [time.thread_time()]
        for slot, stage in zip(self._slots, self._stages, strict=True):
            slot.item = item
            item = next(stage)
            wall.append(time.perf_counter())
            cpu.append(time.thread_time())
        self._sink.write(*item)
        wall.append(time.perf_counter())
        cpu.append(time.thread_time())
        return item.selection, _steps(wall), _steps(cpu)


def _steps(marks: list[float]) -> Times:
    return tuple(later - earlier for earlier, later in pairwise(marks))
