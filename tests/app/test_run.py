"""What ``foveate run`` does with a stream: exit codes, messages, summary, interruption. No video needed."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foveate.app.arguments import RunArguments
from foveate.app.console import Console
from foveate.app.run import run
from foveate.app.signals import Interruption, interruptible
from foveate.app.tally import TallySink
from foveate.pipeline.errors import SettingsError, SinkError, SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import Damage
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks.json_lines import JsonLinesSink
from foveate.pipeline.stream import Stream, open_stream
from tests.waiting import wait_for


def arguments(**changes: Any) -> RunArguments:
    return RunArguments(**{"addresses": ("clip.mp4",), "settings": Settings(), **changes})


def test_a_clean_run(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stream = fake(count=5)
    assert run(arguments(), stream.open, Console()) == Exit.DONE
    assert stream.closed
    out, err = capsys.readouterr()
    assert out == ""  # records are the sinks' business
    # 5 selections of 3 tokens each, a quarter of the tiles changed, half of the cells recomputed.
    for said in ("5 frames", "1 keyframe\n", "15 tokens, 3.0 a frame", "changed 25.0%", "recomputed 50.0%"):
        assert said in err
    assert "decode" in err
    assert "1.00    2.00    3.00" in err


def test_quiet_says_nothing(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(quiet=True), fake().open, Console()) == Exit.DONE
    assert capsys.readouterr() == ("", "")


def test_no_frame_at_all(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(), fake(count=0, info=SourceInfo("c", 1, 1, None, None)).open, Console()) == Exit.DONE
    assert "0 frames" in capsys.readouterr().err


def test_damage_is_told_also_when_quiet(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stream = fake(damage=Damage(3, ["packet 7 is cut", "and more"]))
    assert run(arguments(quiet=True), stream.open, Console()) == Exit.DAMAGED
    assert capsys.readouterr().err == (
        "foveate: warning: the source is damaged: 3 pictures or packets could not be decoded (packet 7 is cut)\n"
    )


@pytest.mark.parametrize(
    ("changes", "suffixes"),
    [
        ({}, ["standard output"]),
        ({"out": ("-",)}, ["standard output"]),
        ({"out": ("a.jsonl",)}, ["a.jsonl"]),
        ({"overlay": "a.mp4"}, []),
        ({"out": ("-", "a.jsonl"), "overlay": "a.mp4"}, ["standard output", "a.jsonl"]),
    ],
)
def test_where_records_go(fake: Any, changes: dict[str, Any], suffixes: list[str]) -> None:
    stream = fake()
    run(arguments(quiet=True, **changes), stream.open, Console())
    _, _, sinks = stream.opened_with
    assert [sink.name for sink in sinks if isinstance(sink, JsonLinesSink)] == suffixes
    assert isinstance(sinks[-1], TallySink)  # counts what the others hold
    assert len(sinks) == len(suffixes) + ("overlay" in changes) + 1


def test_outputs_are_named_in_the_summary(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run(arguments(out=("-", "a.jsonl"), overlay="b.mp4"), fake().open, Console())
    told = capsys.readouterr().err
    assert "wrote a.jsonl\nwrote b.mp4\n" in told


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"out": ("a.foo",)}, "'.foo'"),
        ({"out": ("a.mp4",)}, r"'.mp4'; --overlay \(open_overlay\) writes such files; possible are .jsonl"),
        ({"out": ("a.html",)}, r"--report \(open_report\) writes such files"),
        ({"out": ("a.jsonl", "./a.jsonl")}, "named twice"),
        ({"out": ("-", "-")}, "named twice"),
        ({"overlay": "a.avi"}, "'.avi'"),
        ({"overlay": "a.jsonl"}, r"--out \(open_sink\) writes such files"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_opens(fake: Any, changes: dict[str, Any], said: str) -> None:
    stream = fake()
    with pytest.raises(SettingsError, match=said):
        run(arguments(**changes), stream.open, Console())
    assert stream.opened_with is None


@pytest.mark.parametrize(
    ("source", "settings", "changes", "written", "said"),
    [
        ("line\nbreak.mp4", {}, {"overlay": "line\nbreak.mp4"}, "line\nbreak.mp4", "it is the source itself"),
        ("byte\udcff.mp4", {}, {"overlay": "./byte\udcff.mp4"}, "byte\udcff.mp4", "it is the source itself"),
        ("clip.mp4", {"query_image": ["a.mp4"]}, {"overlay": "a.mp4"}, "a.mp4", "it is read as query_image"),
        ("clip.mp4", {"clip": {"pca": "pca.npz"}}, {"out": ("-", "pca.npz")}, "pca.npz", "it is read as clip.pca"),
    ],
)
def test_nothing_that_is_read_is_overwritten(
    source: str,
    settings: dict[str, Any],
    changes: dict[str, Any],
    written: str,
    said: str,
    fake: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(written).write_bytes(b"precious")
    stream = fake()
    with pytest.raises(SinkError, match=said):
        run(RunArguments((source,), Settings.model_validate(settings), **changes), stream.open, Console())
    assert stream.opened_with is None


def test_a_stage_error_passes_and_closes(fake: Any) -> None:
    stream = fake(error=SourceError("gone"))
    with pytest.raises(SourceError, match="gone"):
        run(arguments(), stream.open, Console())
    assert stream.closed


@pytest.fixture
def heeded() -> Iterator[None]:
    """Signals as at a terminal; tests that run in the background inherit an ignored SIGINT."""
    defaults = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("heeded")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run(
    fake: Any, number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    class Struck(fake):  # type: ignore[misc]
        def __iter__(self) -> Any:
            for index, item in enumerate(super().__iter__()):
                if index == 3:
                    os.kill(os.getpid(), number)
                yield item

    before = signal.getsignal(number)
    stream = Struck(count=100)
    assert run(arguments(), stream.open, Console()) == code
    assert stream.closed
    assert capsys.readouterr().err == "interrupted after 4 frames\n"  # the fourth was written before the signal
    assert signal.getsignal(number) is before


@pytest.mark.usefixtures("heeded")
def test_an_interruption_names_the_frames_that_the_files_hold(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The signal comes when the outputs hold more frames than the caller has received."""
    lines = tmp_path / "tokens.jsonl"

    receive = Stream.__next__

    def receive_the_first(stream: Stream) -> Selection:
        selection = receive(stream)
        wait_for(lambda: lines.read_bytes().count(b"\n") > 3)  # the header, and at least three frames
        os.kill(os.getpid(), signal.SIGINT)
        return selection

    monkeypatch.setattr(Stream, "__next__", receive_the_first)
    given = arguments(addresses=(clip,), settings=Settings(engine="cpu"), out=(str(lines),))
    assert run(given, open_stream, Console()) == 130
    held = lines.read_bytes().count(b"\n") - 1
    assert held >= 3
    assert capsys.readouterr().err == f"interrupted after {held} frames\n"


def test_a_lost_interruption_is_raised_at_the_next_look() -> None:
    with Interruption() as interruption:
        interruption.check()
        interruption.number = signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            interruption.check()


def test_a_signal_that_the_parent_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interruption():
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("heeded")
def test_a_second_signal_ends_the_process_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with Interruption() as interruption:
        interruption.number = signal.SIGINT
        with pytest.raises(KeyboardInterrupt):  # only because _exit is a dummy here
            os.kill(os.getpid(), signal.SIGTERM)
    assert ended == [143]


@pytest.mark.usefixtures("heeded")
def test_a_closed_terminal_may_tell_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail("ended at once"))
    with Interruption() as interruption:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
        assert interruption.code == 129


@pytest.mark.usefixtures("heeded")
def test_a_slow_opening_can_be_interrupted() -> None:
    gate = threading.Event()
    threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    with Interruption() as interruption, pytest.raises(KeyboardInterrupt):
        interruptible(lambda: gate.wait(5.0))
    gate.set()
    assert interruption.code == 130


def test_an_error_while_opening_passes_as_it_is() -> None:
    error = SourceError("no such file")

    def refuse() -> None:
        raise error

    with pytest.raises(SourceError) as caught:
        interruptible(refuse)
    assert caught.value is error
