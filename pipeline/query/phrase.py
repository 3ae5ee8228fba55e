"""One query as it is written: words, a minus sign before what is not wanted, a weight behind."""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST = 1_000
"""Characters of a query that count: it is cut behind them."""
HEAVIEST = 10.0
_SHOWN = 60  # characters of a query in a message

_WEIGHTED = re.compile(r"(?P<text>.*\S)\s*:(?P<weight>\d+(\.\d+)?)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something to look for, or, if ``negative``, to look away from."""

    text: str  # without sign and weight
    weight: float = 1.0  # in (0, HEAVIEST]
    negative: bool = False
    image: str | None = None  # a picture file that shows it; then the text only names it


def parse(query: str) -> Phrase:
    """``red car``, ``-sky`` (not wanted), ``dog:0.5`` (half as much as without a weight).

    Raises ValueError for a query without words, or with another weight.
    """
    text = query.strip()[:LONGEST].rstrip()
    negative = text.startswith("-")
    text = text.removeprefix("-").strip()
    weight = 1.0
    if found := _WEIGHTED.fullmatch(text):
        text, weight = found["text"], float(found["weight"])
        if not 0 < weight <= HEAVIEST:
            raise ValueError(
                f"a query's weight must be above 0 and at most {HEAVIEST:g}, got {weight:g} in {shortened(query)!r}"
            )
    if not any(letter.isalnum() for letter in text):
        raise ValueError(f"a query must have words, got {shortened(query)!r}")
    return Phrase(text, weight, negative)


def shortened(text: str) -> str:
    """As much of a text as a line has room for."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
