"""The errors a user can meet. Each is one line: what, which value, why, what to do."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LONGEST: Final = 300  # characters of what a library says


class FoveateError(Exception):
    """Base of all errors that are the input's or the machine's, not the program's.

    >>> try:
    ...     open_stream("missing.mp4")
    ... except FoveateError as error:
    ...     print(type(error).__name__)
    SourceError
    """


class SourceError(FoveateError):
    """The source could not be opened or read. The command line exits with 1."""


class SinkError(FoveateError):
    """An output could not be written. The command line exits with 1."""


class EngineError(FoveateError):
    """The engine asked for cannot run on this machine. The command line exits with 1."""


class ModelError(FoveateError):
    """A vision-language model, or the server that runs it, could not answer. The command line exits with 1."""


class SettingsError(FoveateError):
    """A setting or argument is wrong. The command line exits with 2."""


def one_line(error: BaseException) -> str:
    """What a library says, as one line that is not too long; its type where it says nothing."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "..."


def first_line(error: BaseException) -> str:
    """The first line of what a library says; its type where it says nothing."""
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextmanager
def out_of_memory_advice(advice: str) -> Iterator[None]:
    """Raise ModelError with ``advice`` if torch runs out of memory.

    torch's message is searched, because not all such errors have a type of their own.
    """
    try:
        yield
    except RuntimeError as error:
        if "out of memory" not in str(error).casefold():
            raise
        raise ModelError(f"{one_line(error)}; {advice}") from error
