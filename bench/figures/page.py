"""Figures in a text, and the records that they come from. Brings a page up to date after a benchmark was run again:

python -m foveate.bench.figures docs/claims.md

A figure is a number with a comment behind it, which a reader of the page does not see:
``31.0<!-- = plain_2_cores / times_faster.tenth / .1f -->``. The parts are the name of a record in results/, the place
in it, and Python's format; a place is a dotted key, or ``NAME > KEY`` of a case; ``A : B`` is a ratio of two places.
A figure that no record has is a question mark. A whole table stands between ``<!-- speeds RECORD -->`` and
``<!-- /speeds -->``; the other kinds are ``quality`` and ``ablation``.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import Positional, arg

from foveate.bench.figures.tables import TABLES
from foveate.bench.records.reading import value_at
from foveate.bench.records.writing import ROOT, write_text
from foveate.pipeline.errors import SourceError

RESULTS: Final = ROOT / "bench" / "results"
UNKNOWN: Final = "?"
_FIGURE: Final = re.compile(r"([+-]?[\d.,]+%?|\?)<!-- = (\S+) / (.+?) / (\S+) -->")
_TABLE: Final = re.compile(rf"(<!-- ({'|'.join(TABLES)}) (\S+) -->).*?(<!-- /\2 -->)", re.DOTALL)


def figures(page: Annotated[Positional[str], arg(metavar="FILE.md", help="A page with marked figures.")]) -> None:
    """Write the records' figures into a page."""
    path = Path(page)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(f"cannot read {path}: {getattr(error, 'strerror', 'it is no text')}") from error
    write_text(path, renewed(text, RESULTS))


def renewed(text: str, results: Path) -> str:
    """The text with its figures as they are in the folder ``results``. Raises SourceError for a file that is broken."""
    text = _FIGURE.sub(lambda found: found[0].replace(found[1], _figure(found, results), 1), text)
    return _TABLE.sub(lambda found: f"{found[1]}\n{_table(found[2], found[3], results)}\n{found[4]}", text)


def _table(kind: str, name: str, results: Path) -> str:
    record = _record(results / f"{name}.json")
    return UNKNOWN if record is None else TABLES[kind](record)


def _figure(found: re.Match[str], results: Path) -> str:
    _, name, place, form = found.groups()
    record = _record(results / f"{name}.json")
    numbers = [None if record is None else _number(record, each.strip()) for each in place.split(" : ")]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers):
        return UNKNOWN
    return format(known[0] if len(known) == 1 else known[0] / known[1], form)


@cache
def _record(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise SourceError(f"{path} is not JSON") from None
    return found


def _number(record: dict[str, Any], place: str) -> float | None:
    case, _, key = place.rpartition(" > ")
    held = next((each for each in record.get("cases", ()) if each.get("name") == case), {}) if case else record
    value = value_at(held, key)
    return value if isinstance(value, int | float) else None
