"""The attributes encoder: colours, light, motion, text, places and sizes by name, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.attributes.embedder import AttributesEmbedder
from foveate.pipeline.query.attributes.shown import shown_in
from foveate.pipeline.query.attributes.vocabulary import Term, read
from foveate.pipeline.query.encoder import Compiled
from foveate.pipeline.query.phrase import Phrase, shortened
from foveate.pipeline.query.program import program

_LISTED = 8  # words in a message


class AttributesEncoder:
    """See foveate.pipeline.query.encoder.QueryEncoder."""

    name: Final = "attributes"

    def compile(self, phrases: Sequence[Phrase]) -> Compiled:
        """Words of the vocabulary; others are told. A phrase without a known word counts for nothing.

        Raises SourceError where an example cannot be read.
        """
        understood, terms, notes = [], [], []
        for phrase in phrases:
            own, note = _shown(phrase.image) if phrase.image is not None else _read(phrase.text)
            notes += [note] if note else []
            if own:
                understood.append(phrase)
                terms.append(own)
        return Compiled(program(understood, terms, "ramp") if understood else None, tuple(notes))

    def embedder(self, geometry: Geometry) -> AttributesEmbedder:
        """A new Embedder."""
        return AttributesEmbedder(geometry)


def _shown(path: str) -> tuple[list[Term], str]:
    """Terms of an example, and what is to be told of them."""
    shown = shown_in(path)
    colours = ", ".join(shown.colours)
    return [shown.term], f"query image {path!r}: the attributes encoder looks for its colours only: {colours}"


def _read(text: str) -> tuple[list[Term], str]:
    """Terms of a phrase, and what is to be told of them; empty where nothing is."""
    found = read(text)
    subject = f"query {shortened(text)!r}:"
    if not found.unknown:
        return found.terms, "" if found.terms else f"{subject} {found.hint or 'it names no attribute'}"
    words = _listed(list(dict.fromkeys(found.unknown)))
    rest = "" if found.terms else ", and so nothing of it"
    rest += f"; {found.hint}" if found.hint else ""
    return found.terms, f"{subject} the attributes encoder does not understand {words}{rest}"


def _listed(words: Sequence[str]) -> str:
    """Words in quotation marks, as many as a line has room for."""
    shown = ", ".join(repr(shortened(word)) for word in words[:_LISTED])
    return shown if len(words) <= _LISTED else f"{shown} and {len(words) - _LISTED} more"
