"""Many cameras at once, which files stand in for: frames per second, what is dropped, and how old tokens are.

python -m foveate.bench.gpu.live sample_videos/bunny.mp4 --streams 100 --seconds 300 --out gpu_live.json
"""

import logging
import multiprocessing
import os
import resource
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, check_least, run_module, size_of
from foveate.bench.gpu.launches import card_name
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.paced import PacedFeed, camera_clip, open_paced
from foveate.pipeline.frames import FrameView
from foveate.pipeline.live.opening import LOG, STEPS, reached
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.settings import LiveSettings, Settings
from foveate.pipeline.stream import Stream
from foveate.pipeline.timing import percentile

_RATE: Final = 30  # pictures a second
_LENGTH: Final = 300  # pictures of the clip
_EACH: Final = 25  # streams of a process
_OPENING: Final = 120.0  # seconds within which every stream must run
_BEGUN: Final = "camera begun"  # the step before those of pipeline.live.opening
_WARM: Final = 30  # frames of a stream before it counts as running
_CURRENT: Final = 0.1  # seconds; tokens that are older are of what came in while decoders were still being made


def gpu_live(
    file: Annotated[Positional[str], arg(metavar="FILE", help="What the cameras see; it is scaled and encoded anew.")],
    out: Out = None,
    streams: Annotated[int, arg(metavar="N", help="Cameras.")] = 100,
    seconds: Annotated[int, arg(metavar="N", help="How long to measure.")] = 300,
    processes: Annotated[int, arg(metavar="N", help="Default: one for 25 cameras.")] = 0,
    size: Annotated[str, arg(metavar="WxH", help="Of the pictures.")] = "1920x1080",
    engine: Annotated[Literal["cuda", "cpu"], arg(help="What chooses the tokens.")] = "cuda",
) -> None:
    """Simulate cameras of 30 pictures a second."""
    record = new_record("gpu_live", out, streams=streams, seconds=seconds, size=size, engine=engine, rate=_RATE)
    pixels = size_of(size)
    check_least(1, streams=streams, seconds=seconds)
    check_least(0, processes=processes)
    settings = Settings(engine=engine, live=LiveSettings(connect_timeout=_OPENING))
    record["processes"] = processes or -(-streams // _EACH)
    if engine == "cuda":
        record["card"] = card_name()
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clip = Path(folder) / "camera.ts"
        camera_clip(Path(file), clip, pixels, _LENGTH, _RATE)
        record |= measured(clip, settings, streams, record["processes"], seconds)
    say(
        f"{streams} streams of {size} in {record['processes']} processes: {record['fps']:.0f} fps of "
        f"{streams * _RATE}, dropped {100 * record['dropped_share']:.3f} %, age p99 {record['age_p99_ms']:.1f} ms, "
        f"decoded to tokens p99 {record['latency_p99_ms']:.2f} ms, {record['cores']:.1f} processors"
    )
    opening = record["opening"]
    say(
        f"until all ran, {record['opening_s']:.1f} s: first tokens {opening['first_p50_s']:.1f} s after the first "
        f"packet, p99 {opening['first_p99_s']:.1f} s; age p50 {opening['age_p50_ms']:.0f} ms, "
        f"p99 {opening['age_p99_ms']:.0f} ms, at most {opening['age_max_ms']:.0f} ms; {opening['skipped']} skipped"
    )
    for step, times in opening["steps"].items():
        say(f"  {step}: after {times['p50_s']:.2f} s, p99 {times['p99_s']:.2f} s")
    hand_out(record, out)


def measured(clip: Path, settings: Settings, streams: int, processes: int, seconds: int) -> dict[str, Any]:
    """The figures over all streams. Raises RedCheckError."""
    numbers = [range(first, streams, processes) for first in range(processes)]
    begin = time.monotonic()
    with _children(clip, settings, streams, numbers) as children:
        for child in children:
            _answer(child, _OPENING)
        opening = time.monotonic() - begin
        for child in children:
            child.send(seconds)
        results = [_answer(child, seconds + _OPENING) for child in children]
    ages = sorted(age for result in results for age in result["ages"])
    latencies = sorted(latency for result in results for latency in result["latencies"])
    waits = sorted(wait for result in results for wait in result["waits"])
    received, dropped = (sum(result[name] for result in results) for name in ("received", "dropped"))
    return {
        "opening_s": opening,
        "opening": _opening([result["opening"] for result in results], begin),
        "fps": len(ages) / seconds,
        "frames": len(ages),
        "received": received,
        "dropped": dropped,
        "dropped_share": dropped / max(1, received),
        **{f"age_p{percent}_ms": 1000 * percentile(ages, percent) for percent in (50, 99)},
        **{f"latency_p{percent}_ms": 1000 * percentile(latencies, percent) for percent in (50, 99)},
        **{f"decoding_p{percent}_ms": 1000 * percentile(waits, percent) for percent in (50, 99)},
        "cores": sum(result["cpu"] for result in results) / seconds,
        "threads_ms": _per_frame([result["threads"] for result in results], len(ages)),
    }


def _opening(processes: Sequence[dict[str, Any]], begin: float) -> dict[str, Any]:
    """Of the time before all streams ran: how old tokens were, and when each stream had reached each step.

    The steps are in seconds from ``begin`` on, when the processes were started.
    """
    ages = sorted(age for process in processes for age in process["ages"])
    firsts = sorted(first for process in processes for first in process["firsts"])
    return {
        "frames": len(ages),
        **{name: sum(process[name] for process in processes) for name in ("skipped", "dropped")},
        **{f"age_p{percent}_ms": 1000 * percentile(ages, percent) for percent in (50, 99)},
        "age_max_ms": 1000 * ages[-1],
        **{f"first_p{percent}_s": percentile(firsts, percent) for percent in (50, 99)},
        "steps": dict(_steps(processes, begin)),
    }


def _steps(processes: Sequence[dict[str, Any]], begin: float) -> Iterator[tuple[str, dict[str, float]]]:
    for step in (_BEGUN, *STEPS):
        times = sorted(moment - begin for process in processes for moment in process["steps"].get(step, ()))
        if times:
            yield step, {f"p{percent}_s": percentile(times, percent) for percent in (50, 99)}


def _per_frame(processes: Sequence[dict[str, float]], frames: int) -> dict[str, float]:
    """Processor time in milliseconds of each kind of thread, over all processes."""
    names = sorted({name for threads in processes for name in threads})
    return {name: 1000 * sum(threads.get(name, 0.0) for threads in processes) / max(1, frames) for name in names}


@contextmanager
def _children(clip: Path, settings: Settings, streams: int, numbers: Sequence[range]) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    ends, started = [], []
    for own in numbers:
        here, there = context.Pipe()
        places = [number / streams for number in own]
        started.append(context.Process(target=_child, args=(there, clip, settings, places), daemon=True))
        started[-1].start()
        there.close()
        ends.append(here)
    try:
        yield ends
    finally:
        for process in started:
            process.terminate()
            process.join()


def _answer(child: Connection, limit: float) -> dict[str, Any]:
    """Raises RedCheckError."""
    if not child.poll(limit):
        raise RedCheckError(f"a process of the cameras did not answer within {limit:g} s")
    try:
        answer = child.recv()
    except EOFError:
        raise RedCheckError("a process of the cameras ended") from None
    if isinstance(answer, str):
        raise RedCheckError(answer)
    assert isinstance(answer, dict)
    return answer


class _Timeline(logging.Handler):
    """When each camera first reached each step, seconds by time.monotonic()."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._times: dict[str, dict[str, float]] = {}
        LOG.setLevel(logging.DEBUG)
        LOG.propagate = False
        LOG.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """See opening.reached."""
        name, step = record.args or ("", "")
        self._times.setdefault(str(step), {}).setdefault(str(name), time.monotonic())

    def steps(self) -> dict[str, list[float]]:
        """The moments at which cameras reached each."""
        return {step: list(times.values()) for step, times in self._times.items()}


@dataclass
class _Camera:
    """One stream, and what came of it."""

    name: str
    clip: Path
    settings: Settings
    phase: float  # seconds by which its pictures come later than those of the first camera
    frames: int = 0
    first: float = 0.0  # seconds from when the first packet was due to the first tokens
    ages: list[float] = field(default_factory=list)  # seconds from when a packet was due to its tokens
    waits: list[float] = field(default_factory=list)  # the part of these up to the decoded picture
    latencies: list[float] = field(default_factory=list)  # seconds from a decoded picture to its tokens
    needs_patches = False
    needs_heat = False
    needs_query = False
    stream: Stream | None = None
    error: str | None = None
    _feed: PacedFeed | None = None

    def run(self) -> None:
        """Read to the end."""
        try:
            reached(self.name, _BEGUN)
            with open_paced(self._opened, self.settings, [self], self.name) as stream:
                self.stream = stream
                stream.drain()
        except Exception as error:  # noqa: BLE001 - it goes to the parent
            self.error = str(error)

    def _opened(self, *opening: Any) -> PacedFeed:
        self._feed = PacedFeed(self.clip, _RATE, self.phase, *opening)
        return self._feed

    def open(self, header: Header) -> None:
        """A sink's; nothing to open."""

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Note a frame's times."""
        assert self._feed is not None
        age = time.monotonic() - self._feed.begin - selection.index / _RATE  # each packet is a picture
        self.first = self.first or selection.index / _RATE + age
        self.ages.append(age)
        self.waits.append(age - selection.extras["latency"])
        self.latencies.append(selection.extras["latency"])
        self.frames += 1

    def close(self) -> None:
        """A sink's; nothing to close."""

    def counts(self) -> tuple[int, int]:
        """Pictures received and dropped so far."""
        status = self.stream.status if self.stream is not None else None
        assert status is not None
        return status.received, status.dropped

    @property
    def skipped(self) -> int:
        """Pictures left out so far because they came before the decoder was ready."""
        status = self.stream.status if self.stream is not None else None
        return 0 if status is None else status.skipped

    @property
    def runs(self) -> bool:
        """Whether it has caught up with what came in while it was opened."""
        return self.frames >= _WARM and self.ages[-1] < _CURRENT

    @property
    def problem(self) -> str | None:
        """Why its figures would not count."""
        if self.error is not None or self.stream is None:
            return self.error or "a camera was not opened"
        on_cpu = self.stream.info.decoded_on_cpu
        return None if on_cpu is None else f"decoded on the CPU: {on_cpu}"


def _child(parent: Connection, clip: Path, settings: Settings, places: Sequence[float]) -> None:
    """``places``: of each camera among all, 0 to 1: neither its pictures nor its keyframes fall on those of others."""
    timeline = _Timeline()
    cameras = [
        _Camera(f"camera-{number}", clip, _staggered(settings, place), place / _RATE)
        for number, place in enumerate(places)
    ]
    for camera in cameras:
        threading.Thread(target=camera.run, name="camera", daemon=True).start()
    while any(not camera.runs and camera.error is None for camera in cameras):
        time.sleep(0.1)
    problems = [camera.problem for camera in cameras if camera.problem is not None]
    parent.send(problems[0] if problems else {})
    if not problems:
        parent.send(_window(cameras, timeline.steps(), parent.recv()))


def _staggered(settings: Settings, place: float) -> Settings:
    """As ``foveate live`` does."""
    change = settings.change
    offset = int(place * change.keyframe_interval)
    return settings.model_copy(update={"change": change.model_copy(update={"keyframe_offset": offset})})


def _window(cameras: Sequence[_Camera], steps: dict[str, list[float]], seconds: int) -> dict[str, Any] | str:
    opening = {
        "ages": [age for camera in cameras for age in camera.ages],
        "firsts": [camera.first for camera in cameras],
        "skipped": sum(camera.skipped for camera in cameras),
        "dropped": sum(camera.counts()[1] for camera in cameras),
        "steps": steps,
    }
    for camera in cameras:
        camera.ages, camera.waits, camera.latencies = [], [], []
    before, used, threads = [camera.counts() for camera in cameras], _processor_time(), _thread_times()
    time.sleep(seconds)
    kept = [(camera.ages, camera.waits, camera.latencies) for camera in cameras]
    spent_by = {name: value - threads.get(name, 0.0) for name, value in _thread_times().items()}
    after, spent = [camera.counts() for camera in cameras], _processor_time() - used
    problems = [camera.problem for camera in cameras if camera.problem is not None]
    if problems:
        return problems[0]
    changes = [(now[0] - then[0], now[1] - then[1]) for then, now in zip(before, after, strict=True)]
    return {
        "opening": opening,
        "ages": [age for ages, _, _ in kept for age in ages],
        "waits": [wait for _, waits, _ in kept for wait in waits],
        "latencies": [latency for _, _, latencies in kept for latency in latencies],
        "received": sum(received for received, _ in changes),
        "dropped": sum(dropped for _, dropped in changes),
        "cpu": spent,
        "threads": spent_by,
    }


def _thread_times() -> dict[str, float]:
    """Seconds of processor time of all threads of the same name so far. Linux only."""
    times: dict[str, float] = {}
    for thread in threading.enumerate():
        stat = Path(f"/proc/self/task/{thread.native_id}/stat")
        user, system = stat.read_text().rpartition(")")[2].split()[11:13]
        times[thread.name] = times.get(thread.name, 0.0) + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return times


def _processor_time() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    run_module(gpu_live)
