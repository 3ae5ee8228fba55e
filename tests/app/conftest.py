"""A stream that needs no video, and the command as a real process."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.app.tally import TallySink
from foveate.pipeline.frames import Damage
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.timing import StageReport

ROOT = Path(__file__).parents[2]


@pytest.fixture
def picture(tmp_path: Path) -> str:
    """A grey picture of 64x48 pixels."""
    file = tmp_path / "grey.pgm"
    file.write_bytes(b"P5 64 48 255\n" + bytes(range(256)) * 12)
    return str(file)


def selection(index: int, tokens: int = 3) -> Selection:
    """One frame's tokens: all alike."""
    whole, part = np.zeros(tokens, np.int32), np.full(tokens, 0.5, np.float32)
    lod, fresh = np.zeros(tokens, np.uint8), np.ones(tokens, bool)
    reason = None if index else "first"
    return Selection(
        index, index / 25, 64, 48, reason, 0.25, 0.5, whole, whole, lod, part, part, part, None, whole, fresh
    )


@dataclass
class FakeStream:
    """Yields ``count`` Selections, then raises ``error`` if there is one."""

    count: int = 5
    error: BaseException | None = None
    info: SourceInfo = field(default_factory=lambda: SourceInfo("clip.mp4", 64, 48, 25.0, 5))
    damage: Damage = field(default_factory=Damage)
    closed: bool = False
    opened_with: tuple[str, Settings, Sequence[Any]] | None = None

    def open(self, source: str, settings: Settings, /, *, sinks: Sequence[Any]) -> "FakeStream":
        self.opened_with = (source, settings, sinks)
        return self

    def __iter__(self) -> Iterator[Selection]:
        for each in map(selection, range(self.count)):
            self._count(each)
            yield each
        if self.error is not None:
            raise self.error

    def _count(self, each: Selection) -> None:
        """No frames are at hand for sinks that write them."""
        for sink in self.opened_with[2] if self.opened_with else ():
            if isinstance(sink, TallySink):
                sink.write(None, each)  # type: ignore[arg-type]

    def __enter__(self) -> "FakeStream":
        return self

    def __exit__(self, *_: object) -> None:
        self.closed = True

    def report(self) -> tuple[StageReport, ...]:
        return (StageReport("decode", self.count, 0.01, 0.01, 0.0, 0.02, 0.001, 0.002, 0.003),)


Start = Callable[..., "subprocess.Popen[bytes]"]


def _heed_signals() -> None:
    """A test run in the background ignores these, and its children would inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts ``foveate`` with the given arguments, in the repository's root; what still runs at the end is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        command = [str(Path(sys.executable).with_name("foveate")), *arguments]
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": ROOT, **options}
        process = subprocess.Popen(command, preexec_fn=_heed_signals, **options)
        running.append(process)
        return process

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def foveate(start: Start) -> Callable[..., tuple[int, str, str]]:
    """Runs ``foveate`` to its end: exit code, standard output, standard error."""

    def run(*arguments: str, **options: Any) -> tuple[int, str, str]:
        process = start(*arguments, **options)
        out, err = process.communicate(timeout=60)
        return process.returncode, (out or b"").decode(), (err or b"").decode()

    return run


@pytest.fixture(scope="session")
def long_clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip that takes much longer than any test waits."""
    path = tmp_path_factory.mktemp("long") / "long.mp4"
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    subprocess.run(
        ["ffmpeg", "-v", "error", "-stream_loop", "40", "-i", str(clip), "-c", "copy", str(path)], check=True
    )
    return path


@pytest.fixture
def fake() -> type[FakeStream]:
    """The stream that needs no video."""
    return FakeStream


@pytest.fixture
def clip() -> str:
    """A real clip, named as from the repository's root."""
    return "sample_videos/pedestrians.mp4"
