"""``foveate bench``, whose code is in foveate.bench: app does not import that, but looks it up here by name."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, cast

_MODULE: Final = "foveate.bench.command"
"""The module whose ``command_of`` finds the command behind ``foveate bench``; the one place that names it."""

Command = Callable[..., int]


def benchmark(arguments: Sequence[str]) -> tuple[Command, str, Sequence[str]]:
    """The function whose parameters are the flags, the command's name such as ``bench compare``, and its arguments."""
    found = import_module(_MODULE).command_of(arguments)
    return cast("tuple[Command, str, Sequence[str]]", found)
