"""One run of a case: bare decoding, or the full pipeline with its records written to a file."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from av.error import FFmpegError

from foveate.bench.case import Case, RedCheckError
from foveate.bench.speed.decoding import decode_bare
from foveate.pipeline.errors import FoveateError
from foveate.pipeline.sinks import open_sink
from foveate.pipeline.stream import open_stream
from foveate.pipeline.timing import StageReport


@dataclass(frozen=True, slots=True)
class Run:
    """What one run took: wall-clock and processor seconds (all threads), from opening the file to closing it."""

    frames: int
    seconds: float
    cpu_seconds: float

    @property
    def fps(self) -> float:
        """Frames per second."""
        return self.frames / self.seconds


@dataclass(frozen=True, slots=True)
class PipelineRun(Run):
    """A run of the full pipeline, and what came out of it."""

    lines: int  # of the file that was written, its header included
    tokens: int
    most_tokens: int  # on any frame
    changed: float  # mean share of tiles
    still_frames: int  # that are no keyframes and on which nothing changed
    keyframes: int
    stages: tuple[StageReport, ...]


def run_decode(case: Case) -> Run:
    """Decode and do nothing else. Raises RedCheckError where that fails."""
    source = case.settings.source
    began, cpu = time.perf_counter(), time.process_time()
    try:
        frames = decode_bare(case.clip.path, source.stream, source.frames)
    except (FFmpegError, ValueError) as error:
        raise RedCheckError(f"bare decoding failed: {error}") from error
    return Run(frames, time.perf_counter() - began, time.process_time() - cpu)


def run_pipeline(case: Case) -> PipelineRun:
    """Select the tokens of every frame and write them as JSON lines. Raises RedCheckError where that fails."""
    with _output() as out:
        began, cpu = time.perf_counter(), time.process_time()
        try:
            counts, stages = _select(case, out)
        except FoveateError as error:
            raise RedCheckError(f"the pipeline failed: {error}") from error
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        with out.open("rb") as file:
            lines = sum(line.endswith(b"\n") for line in file)
    return PipelineRun(
        frames=counts.frames,
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        lines=lines,
        tokens=counts.tokens,
        most_tokens=counts.most_tokens,
        changed=counts.changed / max(counts.frames, 1),
        still_frames=counts.still_frames,
        keyframes=counts.keyframes,
        stages=stages,
    )


@dataclass(slots=True)
class _Counts:
    frames: int = 0
    tokens: int = 0
    most_tokens: int = 0
    changed: float = 0.0  # sum
    still_frames: int = 0
    keyframes: int = 0


def _select(case: Case, out: Path) -> tuple[_Counts, tuple[StageReport, ...]]:
    counts = _Counts()
    with open_stream(str(case.clip.path), case.settings, sinks=[open_sink(str(out))]) as stream:
        for selection in stream:
            counts.frames += 1
            counts.tokens += len(selection)
            counts.most_tokens = max(counts.most_tokens, len(selection))
            counts.changed += selection.changed
            counts.keyframes += selection.keyframe is not None
            counts.still_frames += selection.keyframe is None and selection.changed == 0
    return counts, stream.report()


@contextmanager
def _output() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        yield Path(folder) / "tokens.jsonl"
