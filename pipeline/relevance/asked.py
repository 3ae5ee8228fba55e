"""What the settings ask for, compiled: the encoder, its program, and what it did not understand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.phrase import LONGEST, Phrase, parse, shortened
from foveate.pipeline.query.encoder import Compiled, QueryEncoder
from foveate.pipeline.query.program import Program
from foveate.pipeline.settings import QUERY_MAP, Settings, shown_value


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The queries of a stream as it begins."""

    encoder: QueryEncoder
    program: Program | None
    maps: Mapping[str, Program | None]  # of the maps "query:TEXT" that were asked for, by their names
    notes: tuple[str, ...]
    ignored: tuple[str, ...] = ()  # words of the queries, not of the maps, that count for nothing


def asked(settings: Settings) -> Asked:
    """What ``settings`` ask. Raises SettingsError as compiled_queries does, EngineError, SourceError."""
    encoder, lenient = open_encoder(settings), settings.query_lenient
    compiled = compiled_queries(encoder, settings.query, settings.query_image, lenient=lenient)
    names = [name for name in settings.maps if name.startswith(QUERY_MAP)]
    aside = {name: compiled_queries(encoder, [name.removeprefix(QUERY_MAP)], lenient=lenient) for name in names}
    notes = dict.fromkeys(note for each in (compiled, *aside.values()) for note in each.notes)
    maps = {name: each.program for name, each in aside.items()}
    return Asked(encoder, compiled.program, maps, tuple(notes), compiled.ignored)


def open_encoder(settings: Settings) -> QueryEncoder:
    """The encoder that the settings name. Raises SettingsError, EngineError."""
    if settings.encoder == "open_clip":
        from foveate.pipeline.encoders.query import open_clip_encoder

        return open_clip_encoder(settings.clip)
    from foveate.pipeline.attributes.encoder import AttributesEncoder

    return AttributesEncoder()


def compiled_queries(
    encoder: QueryEncoder, queries: Sequence[str], images: Sequence[str] = (), *, lenient: bool = False
) -> Compiled:
    """The program of ``queries``, and of ``images``, files that show something; None where there are none.

    Raises SettingsError, also for a query of which nothing is understood, unless ``lenient``; SourceError.
    """
    texts = isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries)
    if not texts or isinstance(queries, str):
        raise SettingsError(f"query must be a list of texts, got {shown_value(queries)}")
    if not queries and not images:
        return Compiled(None)
    try:
        phrases = [parse(query) for query in queries]
    except ValueError as error:
        raise SettingsError(f"query: {error}") from None
    compiled = encoder.compile([*phrases, *(Phrase(image, image=image) for image in images)])
    if compiled.refused and not lenient:
        raise SettingsError(compiled.refused[0])
    cut = [query for query in queries if len(query.strip()) > LONGEST]
    notes = [f"query {shortened(query)!r}: only its first {LONGEST:,} characters count" for query in cut]
    return compiled._replace(notes=(*notes, *compiled.notes))
