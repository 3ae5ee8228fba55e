"""Figures in a text, and the records that they come from. Brings a page up to date after a benchmark was run again:

python -m foveate.bench.figures docs/claims.md

A figure is a number with a comment behind it, which a reader of the page does not see:
``31.0<!-- = plain_2_cores / times_faster.tenth / .1f -->``. The parts are the name of a record in results/, the place
in it, and Python's format; a place is a dotted key, or ``NAME > KEY`` of a case; ``A : B`` is a ratio of two places.
A figure of which there is no record is a question mark.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import tyro
from tyro.conf import Positional, arg

from foveate.bench.entry import guarded
from foveate.bench.reading import value_at
from foveate.bench.record import ROOT, write_text
from foveate.pipeline.errors import SourceError

RESULTS: Final = ROOT / "bench" / "results"
UNKNOWN: Final = "?"
_FIGURE: Final = re.compile(r"([+-]?[\d.,]+%?|\?)<!-- = (\S+) / (.+?) / (\S+) -->")


def figures(page: Annotated[Positional[str], arg(metavar="FILE.md", help="A page with marked figures.")]) -> None:
    """Write the records' figures into a page."""
    path = Path(page)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {getattr(error, 'strerror', 'it is no text')}") from error
    write_text(path, renewed(text, RESULTS))


def renewed(text: str, results: Path) -> str:
    """The text with its figures as they are in the folder ``results``. Raises SourceError for a place that is not."""
    return _FIGURE.sub(lambda found: found[0].replace(found[1], _figure(found, results), 1), text)


def stale(text: str, results: Path) -> list[str]:
    """The marked figures of ``text`` that are not those of the records, each with what it should be."""
    return [
        f"{found[0]} should be {now}"
        for found in _FIGURE.finditer(text)
        if found[1] != (now := _figure(found, results))
    ]


def _figure(found: re.Match[str], results: Path) -> str:
    _, name, place, form = found.groups()
    path = results / f"{name}.json"
    if not path.exists():
        return UNKNOWN
    record = json.loads(path.read_text(encoding="utf-8"))
    numbers = [_number(record, each.strip(), name) for each in place.split(" : ")]
    return format(numbers[0] if len(numbers) == 1 else numbers[0] / numbers[1], form)


def _number(record: dict[str, Any], place: str, name: str) -> float:
    case, _, key = place.rpartition(" > ")
    held = next((each for each in record.get("cases", ()) if each.get("name") == case), None) if case else record
    value = None if held is None else value_at(held, key)
    if not isinstance(value, int | float):
        raise SourceError(f"{name}.json has no number at {place!r}")
    return value


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns the exit code."""
    return guarded(lambda: tyro.cli(figures, prog="python -m foveate.bench.figures", args=list(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
