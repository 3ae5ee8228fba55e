"""The attributes encoder: colours, light, motion, text, places and sizes by name, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from foveate.pipeline.attributes.embedder import AttributesEmbedder
from foveate.pipeline.attributes.shown import shown_in
from foveate.pipeline.attributes.vocabulary import Term, nearest, read
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase, shortened
from foveate.pipeline.query.encoder import CompiledQuery
from foveate.pipeline.query.terms import query_terms

_LISTED = 8  # words in a message
_OTHERS: Final = "foveate doctor lists the words that it understands, --encoder open_clip understands any"
_GO_ON: Final = "--query-lenient goes on without it"


class AttributesEncoder:
    """See foveate.pipeline.query.encoder.QueryEncoder."""

    name: Final = "attributes"

    def compile(self, phrases: Sequence[Phrase]) -> CompiledQuery:
        """Words of the vocabulary; others are told. A phrase without a known word counts for nothing.

        Raises SourceError where an example cannot be read.
        """
        found = [_shown(phrase.image) if phrase.image is not None else _read(phrase.text) for phrase in phrases]
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


class _Found(NamedTuple):
    """What was made of one query."""

    terms: list[Term]  # empty where nothing of it is understood
    note: str  # what is to be told of it
    ignored: Sequence[str] = ()  # words that count for nothing
    advice: str = ""  # what to do where there are no terms

    @property
    def refusal(self) -> str:
        """The note with the advice."""
        return f"{self.note}{' ' if self.note.endswith('?') else '; '}{self.advice}"


def _shown(path: str) -> _Found:
    shown = shown_in(path)
    colours = ", ".join(shown.colours)
    return _Found([shown.term], f"query image {path!r}: the attributes encoder looks for its colours only: {colours}")


def _read(text: str) -> _Found:
    found = read(text)
    subject = f"query {shortened(text)!r}:"
    words = list(dict.fromkeys(found.unknown))
    if not words:
        note = "" if found.terms else f"{subject} {found.hint or 'it names no attribute'}"
        return _Found(found.terms, note, (), "; ".join(filter(None, [found.instead, _GO_ON])))
    if found.terms:
        ignored = f"{subject} the attributes encoder does not understand, and ignores, {_listed(words)}"
        return _Found(found.terms, ignored + _meant(words), words)
    told = f"{subject} the attributes encoder does not understand {_listed(words)}, and so nothing of it"
    if found.hint:
        return _Found([], f"{told}; {found.hint}", words, _GO_ON)
    return _Found([], told + _meant(words), words, f"{_OTHERS}; {_GO_ON}")


def _meant(words: Sequence[str]) -> str:
    """A hint at the words of the vocabulary that these are like; empty where there is none."""
    meant = dict.fromkeys(found for word in words[:_LISTED] if (found := nearest(word)) is not None)
    return f"; did you mean {', '.join(map(repr, meant))}?" if meant else ""


def _listed(words: Sequence[str]) -> str:
    """Words in quotation marks, as many as a line has room for."""
    shown = ", ".join(repr(shortened(word)) for word in words[:_LISTED])
    return shown if len(words) <= _LISTED else f"{shown} and {len(words) - _LISTED} more"
