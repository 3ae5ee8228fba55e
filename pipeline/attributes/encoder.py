"""The attributes encoder: compiles words for colours, light, motion, text, places and sizes. Needs no model."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from foveate.pipeline.attributes.colours import NAMES, dominant_colours
from foveate.pipeline.attributes.embedder import AttributesEmbedder
from foveate.pipeline.attributes.vocabulary import VOCABULARY, Term, nearest, phrase_terms
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase, shortened
from foveate.pipeline.query.encoder import CompiledQuery
from foveate.pipeline.query.example import example
from foveate.pipeline.query.terms import query_terms

_LISTED = 8  # words in a message
_OTHERS: Final = "foveate doctor lists the words that it understands, --encoder open_clip understands any"
_LENIENT: Final = "--query-lenient ignores the query"


class AttributesEncoder:
    """See foveate.pipeline.query.encoder.QueryEncoder."""

    name: Final = "attributes"

    def compile(self, phrases: Sequence[Phrase]) -> CompiledQuery:
        """Compile the words of the vocabulary; the notes list others. Phrases without a known word are left out.

        Raises SourceError if an example cannot be read.
        """
        found = [_from_text(each.text) if each.image is None else _from_example(each.image) for each in phrases]
        understood = [phrase for phrase, one in zip(phrases, found, strict=True) if one.terms]
        terms = [one.terms for one in found if one.terms]
        return CompiledQuery(
            query_terms(understood, terms, "ramp") if understood else None,
            tuple(one.note for one in found if one.note),
            tuple(dict.fromkeys(word for one in found for word in one.ignored)),
            tuple(one.refusal for one in found if not one.terms),
        )

    def embedder(self, geometry: Geometry) -> AttributesEmbedder:
        """A new Embedder."""
        return AttributesEmbedder(geometry)


class _Result(NamedTuple):
    """The result for one query."""

    terms: list[Term]  # empty if the query was not understood
    note: str  # for the user; empty if there is nothing to say
    ignored: Sequence[str] = ()  # words without effect
    advice: str = ""  # what to do if there are no terms

    @property
    def refusal(self) -> str:
        """The note with the advice."""
        return f"{self.note}{' ' if self.note.endswith('?') else '; '}{self.advice}"


def _from_example(path: str) -> _Result:
    """A term for the share of a cell's samples that have any of the picture's dominant colours."""
    colours = [NAMES[index] for index in dominant_colours(example(path))]
    terms = [VOCABULARY[colour][0].term() for colour in colours]
    weights = np.stack([weights for weights, _ in terms]).sum(axis=0)
    note = f"query image {path!r}: the attributes encoder looks for its colours only: {', '.join(colours)}"
    return _Result([(np.asarray(weights, np.float32), terms[0][1])], note)


def _from_text(text: str) -> _Result:
    found = phrase_terms(text)
    subject = f"query {shortened(text)!r}:"
    words = list(dict.fromkeys(found.unknown))
    if not words:
        note = "" if found.terms else f"{subject} {found.hint or 'it names no attribute'}"
        return _Result(found.terms, note, (), "; ".join(filter(None, [found.instead, _LENIENT])))
    if found.terms:
        ignored = f"{subject} the attributes encoder does not understand, and ignores, {_listed(words)}"
        return _Result(found.terms, ignored + _suggestions(words), words)
    unknown = f"{subject} the attributes encoder does not understand {_listed(words)}"
    if found.hint:
        return _Result([], f"{unknown}; {found.hint}", words, _LENIENT)
    return _Result([], unknown + _suggestions(words), words, f"{_OTHERS}; {_LENIENT}")


def _suggestions(words: Sequence[str]) -> str:
    """A hint at similar words of the vocabulary; empty if there are none."""
    meant = dict.fromkeys(found for word in words[:_LISTED] if (found := nearest(word)) is not None)
    return f"; did you mean {', '.join(map(repr, meant))}?" if meant else ""


def _listed(words: Sequence[str]) -> str:
    """Words in quotation marks, as many as fit a message."""
    shown = ", ".join(repr(shortened(word)) for word in words[:_LISTED])
    return shown if len(words) <= _LISTED else f"{shown} and {len(words) - _LISTED} more"
