"""The syntax of a query: words, a minus sign in front for what to avoid, a weight at the end."""

import re
from dataclasses import dataclass

LONGEST = 1_000
"""Longest query, in characters: the rest is cut off."""
HEAVIEST = 10.0
_SHOWN = 60  # characters of a query or a value in a message

_WEIGHTED = re.compile(
    r"(?P<text>.*\S)\s*:(?P<weight>[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf|nan)", re.DOTALL | re.IGNORECASE
)
_MINUS = "-\u2010\u2011\u2012\u2013\u2014\u2212"  # and the hyphens and dashes that editors put in its place
_UNWANTED_WORD = re.compile(rf"\s[{_MINUS}](?P<word>[^\W\d_]\w*)")


@dataclass(frozen=True, slots=True)
class Phrase:
    """Something to look for, or, if ``negative``, to avoid."""

    text: str  # without sign and weight
    weight: float = 1.0  # in (0, HEAVIEST]
    negative: bool = False
    image: str | None = None  # an example picture; ``text`` is then its name


def parse(query: str) -> Phrase:
    """``red car``, ``-sky`` (not wanted), ``dog:0.5`` (half as much as without a weight).

    Raises ValueError for a query without words, with another weight, or with a minus sign before a later word.
    """
    text = query.strip()[:LONGEST].rstrip()
    negative = text.startswith(tuple(_MINUS))
    text = text[negative:].strip()
    weight = 1.0
    if found := _WEIGHTED.fullmatch(text):
        text, weight = found["text"], float(found["weight"])
        if not 0 < weight <= HEAVIEST:
            raise ValueError(
                f"a query's weight must be above 0 and at most {HEAVIEST:g}, got {weight:g} in {shortened(query)!r}"
            )
    if found := _UNWANTED_WORD.search(text):
        raise ValueError(
            f"what is not wanted must be a query of its own, '-{shortened(found['word'])}', got {shortened(query)!r}"
        )
    if not any(letter.isalnum() for letter in text):
        raise ValueError(f"a query must have words, got {shortened(query)!r}")
    return Phrase(text, weight, negative)


def shortened(text: str) -> str:
    """The text, cut to what fits a message."""
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
