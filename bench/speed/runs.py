"""One run of a case: bare decoding, or the full pipeline with its records written to a file."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import av
from av.error import FFmpegError

from foveate.bench.case import Case, RedCheckError
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


def decode_bare(path: Path, stream: int | None = None, frames: int | None = None) -> int:
    """Decode a file's video stream with FFmpeg's own choice of threads, convert nothing, and count the frames.

    It shares no code with the pipeline's sources.

    ``stream`` counts the video streams from 0 (None: the best), ``frames`` is where to stop (None: at the end).
    Raises FFmpegError, and ValueError where the file has no such stream.
    """
    with av.open(f"file:{path}") as container:
        videos = container.streams.video
        best = container.streams.best("video") if stream is None else videos[stream] if stream < len(videos) else None
        if not isinstance(best, av.VideoStream):
            raise ValueError(f"{path.name} has no video stream {'' if stream is None else stream}".rstrip())
        best.thread_type = "AUTO"  # as the pipeline's source asks for
        return sum(1 for _ in islice(container.decode(best), frames))


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
            selected, stages = _select(case, out)
        except FoveateError as error:
            raise RedCheckError(f"the pipeline failed: {error}") from error
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        with out.open("rb") as file:
            lines = sum(line.endswith(b"\n") for line in file)
    tokens, changed, keyframes = zip(*selected, strict=True) if selected else ((), (), ())
    return PipelineRun(
        frames=len(selected),
        seconds=seconds,
        cpu_seconds=cpu_seconds,
        lines=lines,
        tokens=sum(tokens),
        most_tokens=max(tokens, default=0),
        changed=sum(changed) / max(len(selected), 1),
        still_frames=sum(not share and not keyframe for _, share, keyframe in selected),
        keyframes=sum(keyframes),
        stages=stages,
    )


def _select(case: Case, out: Path) -> tuple[list[tuple[int, float, bool]], tuple[StageReport, ...]]:
    """Of each frame: tokens, share of tiles changed, and whether it is a keyframe."""
    with open_stream(str(case.clip.path), case.settings, sinks=[open_sink(str(out))]) as stream:
        frames = [(len(selection), selection.changed, selection.keyframe is not None) for selection in stream]
    return frames, stream.report()


@contextmanager
def _output() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        yield Path(folder) / "tokens.jsonl"
