"""Standard error: one line at a time, and no secrets."""

import contextlib
import io
import logging
import os
import re
import sys
import warnings
from types import SimpleNamespace
from typing import Any

import pytest

from foveate.app.console import Console
from foveate.app.progress import progress, progress_of_several
from foveate.app.summary import print_summary
from foveate.app.tally import Tally


@pytest.mark.parametrize(
    ("address", "secret"),
    [
        ("rtsp://user:secret@camera/live", "secret"),
        ("rtsp://user:se/cr@et@camera/live", "se/cr@et"),
        ("rtsp://user:s%40cret@camera/live", "s@cret"),
        ("http://camera/live?token=abc123", "abc123"),
        ("http:/user:secret@camera/live", "secret"),
        ("http://camera/live?x=1&API_KEY=abc123", "abc123"),
        ("http://camera/live.cgi?loginuse=me&loginpas=abc123", "abc123"),
    ],
)
def test_a_secret_appears_nowhere(address: str, secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.learn(address)
    for said in (address, f"cannot open {address}: refused", f"the server took {secret!r} ill"):
        console.say(said)
        console.error(said)
        console.warn(said)
    told = capsys.readouterr().err
    assert secret not in told
    assert "***" in told


def test_an_address_never_seen_before_is_cleaned_too(capsys: pytest.CaptureFixture[str]) -> None:
    Console().say("from rtsp://user:pw@camera/live")
    assert capsys.readouterr().err == "from rtsp://***@camera/live\n"


def test_what_follows_an_address_stays(capsys: pytest.CaptureFixture[str]) -> None:
    Console().say("http://camera/live?key=abc123: failed: no answer")
    assert capsys.readouterr().err == "http://camera/live?key=***: failed: no answer\n"


def test_plain_text_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console()
    console.learn("a@b:c.mp4")
    console.say("a@b:c.mp4: 3 tokens; key=5")
    assert capsys.readouterr().err == "a@b:c.mp4: 3 tokens; key=5\n"


def test_errors_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    Console().error("first\n  second\tthird")
    assert capsys.readouterr().err == "foveate: error: first second third\n"


def test_what_libraries_warn_of_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    before = list(logging.getLogger().handlers)
    with warnings.catch_warnings(), Console().warnings():
        warnings.simplefilter("always")
        warnings.warn("old\nthing", stacklevel=1)
        logging.getLogger("foveate.pipeline").warning("told to stop: %s", "decode")
    assert capsys.readouterr().err == "foveate: warning: old thing\nfoveate: warning: told to stop: decode\n"
    assert logging.getLogger().handlers == before


def test_a_line_is_written_in_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several threads at once, each has its line."""
    written: list[str] = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append, flush=lambda: None))
    Console().say("one source")
    Console().warn("another one")
    assert written == ["one source\n", "foveate: warning: another one\n"]


def test_a_standard_error_that_nobody_reads(monkeypatch: pytest.MonkeyPatch, fake: Any) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    broken, tally = os.fdopen(writer, "w"), Tally()
    monkeypatch.setattr(sys, "stderr", broken)
    Console().say("nobody reads this")
    with progress("clip.mp4", 5, shown=True) as follow:
        for selection in fake():
            tally.add(selection)
            follow(selection, tally)
    print_summary(tally, fake().report(), ["tokens.jsonl"])
    with contextlib.suppress(BrokenPipeError):
        broken.close()


def test_the_progress_of_several_videos(monkeypatch: pytest.MonkeyPatch, fake: Any) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_of_several(3, shown=True) as shown:
        shown.end(failed=1)  # one that could not be opened
        for title, frames in (("a.mp4", 5), ("b.mp4", None)):
            tally, follow = Tally(), shown.begin(title, frames)
            for selection in fake():
                tally.add(selection)
                follow(selection, tally)
            shown.end(failed=1)
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    for row in ("videos", "3/3", "1 failed", "a.mp4", "1/5", "b.mp4", "1 frames", "25% changed", "3 tokens"):
        assert row in said


def test_a_closed_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    Console().error("nobody hears this")
    assert capsys.readouterr().out == ""
