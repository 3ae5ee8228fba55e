"""``foveate ask``: frames in, an answer out."""

import sys
import time
from collections.abc import Callable
from typing import Protocol

from foveate.app.ask.arguments import AskArguments
from foveate.app.ask.readers import Answering, open_model
from foveate.app.console import Console
from foveate.app.damage import conclude
from foveate.app.signals import Interruption, interruptible
from foveate.app.streams import SelectionStream
from foveate.pipeline.errors import SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import FrameView
from foveate.pipeline.live.source import FiniteError
from foveate.pipeline.live.target import is_live
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.remote.feed import EndlessError
from foveate.pipeline.sources.schemes import may_end
from foveate.pipeline.stream import Expected


class Stream(SelectionStream, Protocol):
    """The part of foveate.pipeline.stream.Stream that is used here."""

    @property
    def frame(self) -> FrameView | None:
        """The frame of the latest Selection."""


class Opener(Protocol):
    """The part of foveate.pipeline.stream.open_stream that is used here."""

    def __call__(self, source: str, settings: Settings, /, *, expect: Expected | None) -> Stream: ...


def answer(arguments: AskArguments, open_stream: Opener, console: Console) -> int:
    """Write the answer, or one after the other, and say on standard error what it costs. Returns the exit code.

    Raises SourceError, SettingsError, EngineError, ModelError, and BrokenPipeError where the reader went away.
    """
    _check_source(arguments)
    model = open_model(arguments)
    settings = arguments.settings(model.merge, model.tokens, model.patches)
    with Interruption() as interruption:
        try:
            if not arguments.quiet:
                console.say(_looking(settings))
            with interruptible(lambda: _opened(arguments, open_stream, settings)) as stream:
                _follow(arguments, stream, model, interruption.check, console)
        except KeyboardInterrupt:
            console.say("interrupted")
            return interruption.code
    return conclude(stream.damage, console) if arguments.every is None else Exit.DONE


def _check_source(arguments: AskArguments) -> None:
    """Raise SourceError for a live source where a file is wanted, and the other way round."""
    live = is_live(arguments.address)
    if arguments.every is None and live and not may_end(arguments.address):
        raise _is_live(arguments)
    if arguments.every is not None and not live:
        raise _is_file(arguments)


def _is_live(arguments: AskArguments) -> SourceError:
    name = shown(arguments.address)
    return SourceError(f"{name} is a live source; use --every 10s to ask about its latest frames repeatedly")


def _is_file(arguments: AskArguments) -> SourceError:
    return SourceError(f"{shown(arguments.address)} is not a live source, and --every is for live sources only")


def _opened(arguments: AskArguments, open_stream: Opener, settings: Settings) -> Stream:
    """Open the source; whether an address by HTTP is live is known only now."""
    try:
        return open_stream(arguments.address, settings, expect="file" if arguments.every is None else "live")
    except EndlessError:
        raise _is_live(arguments) from None
    except FiniteError:
        raise _is_file(arguments) from None


def _looking(settings: Settings) -> str:
    wanted = ", ".join(map(repr, settings.query))
    return f"looking for {wanted}" if wanted else "no query: no word of the question names an attribute"


def _follow(
    arguments: AskArguments, stream: Stream, model: Answering, check: Callable[[], None], console: Console
) -> None:
    """Read the frames, and ask when it is time: at the end, of a live source each time that ``every`` has passed."""
    due = None if arguments.every is None else time.monotonic() + arguments.every
    frames = told = 0  # ``told``: those that the latest answer is about
    for selection in stream:
        model.add(selection, stream.frame)
        frames += 1
        check()
        if arguments.every is not None and due is not None and time.monotonic() >= due:
            _answer(arguments, model, console)
            due, told = time.monotonic() + arguments.every, frames
    if not frames:
        raise SourceError(f"{shown(arguments.address)} has no frame to ask about")
    if frames > told:
        _answer(arguments, model, console)


def _answer(arguments: AskArguments, model: Answering, console: Console) -> None:
    """Print one answer as it comes."""
    if not arguments.quiet:
        console.say(str(model.account()))
    begun = False
    try:
        for piece in model.answer():
            print(_printable(piece), end="", flush=True)
            begun = True
    finally:
        if begun:
            print(flush=True)


def _printable(text: str) -> str:
    """``text`` without control characters, and with ? for what standard output's encoding lacks."""
    coding = getattr(sys.stdout, "encoding", None) or "utf-8"
    kept = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    return kept.encode(coding, "replace").decode(coding)
