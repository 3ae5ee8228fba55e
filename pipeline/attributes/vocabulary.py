"""The words that the attributes encoder understands, and the condition that each sets for a cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np

from foveate.pipeline.attributes.colours import NAMES
from foveate.pipeline.geometry import Map
from foveate.pipeline.query.terms import COEFFICIENTS, INPUTS

LIGHT, MOVING, TEXT, SMALLEST, LARGEST = range(len(NAMES), COEFFICIENTS)
"""Which coefficient holds what, behind the shares of the colours: see Embedder."""
_X, _Y = COEFFICIENTS, COEFFICIENTS + 1

Term = tuple[Map, float]


class Ramp(NamedTuple):
    """A linear ramp of one input: 0 at ``none``, 1 at ``full``, which may be the lower of the two; clipped beyond."""

    input: int
    none: float
    full: float

    def term(self) -> Term:
        """Weights float32[INPUTS] and bias."""
        weights = np.zeros(INPUTS, np.float32)
        weights[self.input] = 1 / (self.full - self.none)
        return weights, -self.none / (self.full - self.none)

    def excludes(self, other: Ramp) -> bool:
        """Whether both can never be 1: opposed ramps of one input, different colours, or opposite sizes."""
        if {self.input, other.input} == {SMALLEST, LARGEST}:
            return True
        if self.input != other.input and max(self.input, other.input) < len(NAMES):
            return True
        rising, falling = sorted((self, other), key=lambda ramp: ramp.full < ramp.none)
        opposed = rising.full > rising.none and falling.full < falling.none
        return self.input == other.input and opposed and rising.full > falling.full


_LEFT, _RIGHT = Ramp(_X, 0.55, 0.4), Ramp(_X, 0.45, 0.6)
_TOP, _BOTTOM = Ramp(_Y, 0.55, 0.4), Ramp(_Y, 0.45, 0.6)
_CENTRE = (Ramp(_X, 0.2, 0.3), Ramp(_X, 0.8, 0.7), Ramp(_Y, 0.2, 0.3), Ramp(_Y, 0.8, 0.7))
_SHADES: Final = {
    "white": "ivory",
    "grey": "gray silver",
    "red": "crimson scarlet maroon burgundy",
    "yellow": "gold golden",
    "green": "lime olive emerald",
    "blue": "cyan navy azure",
    "purple": "violet magenta fuchsia lilac indigo",
    "pink": "rose",
    "brown": "tan beige",
}
"""Synonyms of the colour names of colours.py."""
_MEANINGS: Final[Sequence[tuple[str, tuple[Ramp, ...]]]] = (
    *((f"{name} {_SHADES.get(name, '')}", (Ramp(index, 0.05, 0.3),)) for index, name in enumerate(NAMES)),
    ("dark", (Ramp(LIGHT, 0.4, 0.25),)),
    ("bright light", (Ramp(LIGHT, 0.6, 0.75),)),
    ("moving motion movement", (Ramp(MOVING, 0.0, 1.0),)),
    ("still static unmoving stationary motionless", (Ramp(MOVING, 1.0, 0.0),)),
    ("text letter letters lettering word words writing sign signs", (Ramp(TEXT, 0.0, 1.0),)),
    ("small tiny little", (Ramp(SMALLEST, 0.62, 0.54),)),
    ("large big huge", (Ramp(LARGEST, 0.58, 0.66),)),
    ("left", (_LEFT,)),
    ("right", (_RIGHT,)),
    ("top upper above", (_TOP,)),
    ("bottom lower below", (_BOTTOM,)),
    ("centre center middle central", _CENTRE),
)
VOCABULARY: Final[Mapping[str, tuple[Ramp, ...]]] = {
    word: ramps for words, ramps in _MEANINGS for word in words.split()
}
"""The ramps of every known word; all of them must hold."""
SYNONYMS: Final[tuple[tuple[str, ...], ...]] = tuple(tuple(words.split()) for words, _ in _MEANINGS)
"""The known words, grouped by meaning."""

_IGNORED: Final = frozenset(
    {"a", "an", "the", "in", "on", "at", "to", "of", "with", "and", "is", "are", "that", "which"}
    | {"thing", "things", "object", "objects", "colour", "color", "coloured", "colored", "part", "side", "half"}
)
_EITHER: Final = "write each as a query of its own: a match with any of them counts"
_CONNECTIVES: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("not", "no", "non", "without", "except"), "write what is not wanted as a query of its own: '-red'"
    ),
    **dict.fromkeys(("or", "either"), _EITHER),
}
"""Words that negate or join others, which a query cannot express, and what to write instead."""
_SIMILARITY: Final = 0.75  # of difflib's ratio, which is 1 for equal words
_WORD = re.compile(r"\w+")


class PhraseTerms(NamedTuple):
    """The terms of a phrase, and what was not understood."""

    terms: list[Term]
    unknown: list[str]  # words, as they were written
    hint: str = ""  # why there are no terms, or what to write instead
    instead: str = ""  # what to write instead, if the hint gives a reason


def nearest(word: str) -> str | None:
    """The known word most similar to an unknown one; None if there is none."""
    return next(iter(get_close_matches(word.casefold(), VOCABULARY, n=1, cutoff=_SIMILARITY)), None)


def phrase_terms(text: str) -> PhraseTerms:
    """The terms of a phrase, one or more for each word of the vocabulary. Words such as "the" are skipped.

    There are no terms if a word such as "not" occurs, or if two words exclude each other.
    """
    ramps: dict[Ramp, str] = {}
    words = _WORD.findall(text)
    connectives = [word for word in words if word.casefold() in _CONNECTIVES]
    if connectives:
        return PhraseTerms([], connectives, _CONNECTIVES[connectives[0].casefold()])
    unknown = []
    for word in words:
        known = VOCABULARY.get(word.casefold())
        if known is not None:
            ramps |= dict.fromkeys(known, word)
        elif word.casefold() not in _IGNORED:
            unknown.append(word)
    for one, other in combinations(ramps, 2):
        if one.excludes(other):
            return PhraseTerms([], [], f"nothing is both {ramps[one]!r} and {ramps[other]!r}", _EITHER)
    return PhraseTerms([ramp.term() for ramp in ramps], unknown)


def queries_in(question: str) -> tuple[str, ...]:
    """Queries from a question: one with all the words known, or one for each if two of them exclude each other.

    "Who is moving on the left?" asks for "moving left", "Is the red or the blue car faster?" for "red" and for "blue".
    """
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(question))
    known = [word for word in words if word in VOCABULARY]
    if not known:
        return ()
    together = " ".join(known)
    return (together,) if phrase_terms(together).terms else tuple(known)
