"""Standard output, where records go if no output is named."""

import sys
from typing import Final

from foveate.pipeline.sinks.destination import STANDARD_OUTPUT

NOTHING_KEPT: Final = (
    "no output is named, so only the summary is shown; --out FILE keeps the tokens, --out - shows them here"
)


def is_terminal() -> bool:
    """Whether somebody would see what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


def default_outputs(sources: int = 1) -> tuple[str, ...]:
    """Where the records of that many sources go: of one to nowhere on a terminal, which a few frames would fill."""
    return () if sources == 1 and is_terminal() else (STANDARD_OUTPUT,)
