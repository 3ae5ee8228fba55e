"""The words that the attributes encoder understands, and what each asks of a cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from foveate.pipeline.query.attributes.colours import NAMES
from foveate.pipeline.query.program import COEFFICIENTS, INPUTS, Map

LIGHT, MOVING, TEXT, SMALLEST, LARGEST = range(len(NAMES), COEFFICIENTS)
"""Which coefficient holds what, behind the shares of the colours: see Embedder."""
_X, _Y = COEFFICIENTS, COEFFICIENTS + 1

Term = tuple[Map, float]


class Ramp(NamedTuple):
    """0 up to ``none`` of an input, 1 from ``full`` on; or the other way round, where ``full`` is below ``none``."""

    input: int
    none: float
    full: float

    def term(self) -> Term:
        """Weights float32[INPUTS] and bias."""
        weights = np.zeros(INPUTS, np.float32)
        weights[self.input] = 1 / (self.full - self.none)
        return weights, -self.none / (self.full - self.none)


_LEFT, _RIGHT = Ramp(_X, 0.55, 0.4), Ramp(_X, 0.45, 0.6)
_TOP, _BOTTOM = Ramp(_Y, 0.55, 0.4), Ramp(_Y, 0.45, 0.6)
_CENTRE = (Ramp(_X, 0.2, 0.3), Ramp(_X, 0.8, 0.7), Ramp(_Y, 0.2, 0.3), Ramp(_Y, 0.8, 0.7))
_MEANINGS: Final[Sequence[tuple[str, tuple[Ramp, ...]]]] = (
    *((name, (Ramp(index, 0.05, 0.3),)) for index, name in enumerate(NAMES)),
    ("gray silver", (Ramp(NAMES.index("grey"), 0.05, 0.3),)),
    ("violet magenta lilac", (Ramp(NAMES.index("purple"), 0.05, 0.3),)),
    ("tan beige", (Ramp(NAMES.index("brown"), 0.05, 0.3),)),
    ("cyan navy", (Ramp(NAMES.index("blue"), 0.05, 0.3),)),
    ("rose", (Ramp(NAMES.index("pink"), 0.05, 0.3),)),
    ("golden", (Ramp(NAMES.index("yellow"), 0.05, 0.3),)),
    ("dark", (Ramp(LIGHT, 0.4, 0.25),)),
    ("bright light", (Ramp(LIGHT, 0.6, 0.75),)),
    ("moving", (Ramp(MOVING, 0.0, 1.0),)),
    ("still static unmoving", (Ramp(MOVING, 1.0, 0.0),)),
    ("text letters lettering words writing sign", (Ramp(TEXT, 0.0, 1.0),)),
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
"""Every word that is understood; all of its ramps must hold."""
SYNONYMS: Final[tuple[tuple[str, ...], ...]] = tuple(tuple(words.split()) for words, _ in _MEANINGS)
"""The same words, those of one meaning together."""

_IGNORED: Final = frozenset(
    {"a", "an", "the", "in", "on", "at", "of", "with", "and", "is", "are", "that", "which", "thing", "things"}
)
_WORD = re.compile(r"\w+")


class Read(NamedTuple):
    """A phrase as far as it is understood."""

    terms: list[Term]
    unknown: list[str]  # words, as they were written


def read(text: str) -> Read:
    """The terms of a phrase, one or more for each word of the vocabulary. Words such as "the" count for nothing."""
    ramps: dict[Ramp, None] = {}
    unknown = []
    for word in _WORD.findall(text):
        known = VOCABULARY.get(word.casefold())
        if known is not None:
            ramps |= dict.fromkeys(known)
        elif word.casefold() not in _IGNORED:
            unknown.append(word)
    return Read([ramp.term() for ramp in ramps], unknown)
