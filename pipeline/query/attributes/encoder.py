"""The attributes encoder: colours, light, motion, text, places and sizes by name, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.attributes.embedder import AttributesEmbedder
from foveate.pipeline.query.attributes.shown import shown_in
from foveate.pipeline.query.attributes.vocabulary import read
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
            found = read(phrase.text) if phrase.image is None else shown_in(phrase.image)
            if phrase.image is not None:
                notes.append(f"query image {phrase.image!r}: the attributes encoder looks for its colours only")
            elif found.unknown:
                words = _listed(list(dict.fromkeys(found.unknown)))
                rest = "" if found.terms else ", and so nothing of it"
                rest += f"; {found.hint}" if found.hint else ""
                notes.append(
                    f"query {shortened(phrase.text)!r}: the attributes encoder does not understand {words}{rest}"
                )
            elif not found.terms:
                notes.append(f"query {shortened(phrase.text)!r}: it names no attribute")
            if found.terms:
                understood.append(phrase)
                terms.append(found.terms)
        return Compiled(program(understood, terms, "ramp") if understood else None, tuple(notes))

    def embedder(self, geometry: Geometry) -> AttributesEmbedder:
        """A new Embedder."""
        return AttributesEmbedder(geometry)


def _listed(words: Sequence[str]) -> str:
    """Words in quotation marks, as many as a line has room for."""
    shown = ", ".join(repr(shortened(word)) for word in words[:_LISTED])
    return shown if len(words) <= _LISTED else f"{shown} and {len(words) - _LISTED} more"
