"""The queries of a stream, compiled: encoder, terms, and notes on what was not understood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.phrase import LONGEST, Phrase, parse, shortened
from foveate.pipeline.query.encoder import CompiledQuery, QueryEncoder
from foveate.pipeline.query.terms import QueryTerms
from foveate.pipeline.settings import QUERY_MAP, Settings, shown_value


@dataclass(frozen=True, slots=True, eq=False)
class StreamQuery:
    """The compiled queries of a stream, as the settings give them."""

    encoder: QueryEncoder
    terms: QueryTerms | None
    maps: Mapping[str, QueryTerms | None]  # terms of the requested maps "query:TEXT", by name
    notes: tuple[str, ...]
    ignored: tuple[str, ...] = ()  # words of the queries, not of the maps, without effect


def stream_query(settings: Settings) -> StreamQuery:
    """Compile the queries of ``settings``. Raises SettingsError as compile_queries does, EngineError, SourceError."""
    encoder, lenient = open_encoder(settings), settings.query_lenient
    compiled = compile_queries(encoder, settings.query, settings.query_image, lenient=lenient)
    names = [name for name in settings.maps if name.startswith(QUERY_MAP)]
    aside = {name: compile_queries(encoder, [name.removeprefix(QUERY_MAP)], lenient=lenient) for name in names}
    notes = dict.fromkeys(note for each in (compiled, *aside.values()) for note in each.notes)
    maps = {name: each.terms for name, each in aside.items()}
    return StreamQuery(encoder, compiled.terms, maps, tuple(notes), compiled.ignored)


def open_encoder(settings: Settings) -> QueryEncoder:
    """The encoder that the settings name. Raises SettingsError, EngineError."""
    if settings.encoder == "open_clip":
        from foveate.pipeline.encoders.query import open_clip_encoder

        return open_clip_encoder(settings.clip)
    from foveate.pipeline.attributes.encoder import AttributesEncoder

    return AttributesEncoder()


def compile_queries(
    encoder: QueryEncoder, queries: Sequence[str], images: Sequence[str] = (), *, lenient: bool = False
) -> CompiledQuery:
    """Compile ``queries`` and ``images``, files with example pictures; terms None if there are none.

    Raises SettingsError, also for a query that is not understood at all, unless ``lenient``; SourceError.
    """
    texts = isinstance(queries, Sequence) and all(isinstance(query, str) for query in queries)
    if not texts or isinstance(queries, str):
        raise SettingsError(f"query must be a list of texts, got {shown_value(queries)}")
    if not queries and not images:
        return CompiledQuery(None)
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
