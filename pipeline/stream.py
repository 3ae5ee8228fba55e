"""open_stream: from the address of a video to an iterator of Selections."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from foveate.pipeline.awaiting import Awaiting
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Sharing, Stage
from foveate.pipeline.engine import Engine, open_decoder, open_engine
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.frames import Damage, Frame, FrameView, Source, SourceInfo
from foveate.pipeline.keywords import SettingsKeywords
from foveate.pipeline.live.moments import stamped
from foveate.pipeline.live.source import LiveSource
from foveate.pipeline.live.state import Listener, Status
from foveate.pipeline.live.target import is_live
from foveate.pipeline.query.asked import Asked, asked, compiled_queries
from foveate.pipeline.runner import Runner
from foveate.pipeline.selection import Header, Selection, Step
from foveate.pipeline.settings import Settings, settings_problem, shown_value
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.timing import StageReport

_LOG = logging.getLogger("foveate")

LIVE_IN_FLIGHT = 2  # frames between a live source and the caller's next wish: more would only grow old on the way


def open_stream(
    source: str | os.PathLike[str],
    settings: Settings | None = None,
    /,
    *,
    sinks: Sequence[Sink] = (),
    listener: Listener | None = None,
    **overrides: Unpack[SettingsKeywords],
) -> Stream:
    """Open ``source`` (a path, a camera or a network address) and get an iterator of Selections, one per frame.

    ``listener`` is told every state of a live source, by one of the stream's threads.

    ``overrides`` are top-level fields of Settings (``budget=100``, ``allocation={"memory": "stream"}``), applied on top
    of ``settings``. Raises SettingsError, SourceError, EngineError; iterating also raises SinkError.
    """
    source = _address(source)
    settings = _asked_by(sinks, _overridden(_base(settings), overrides))
    feedback = Feedback()
    queries = asked(settings)
    for note in queries.notes if queries else ():
        _LOG.warning("%s", note)
    engine = open_engine(settings, feedback, queries)
    opened: Source
    decode_shares: Sharing = False
    if is_live(source):
        opened = LiveSource(source, settings.live, settings.source, listener)
    else:
        opened, decode_shares = open_decoder(engine, source, settings.source)
    return Stream(opened, settings, engine, feedback, sinks, decode_shares, queries)


def _address(source: object) -> str:
    """The source as text. Raises SettingsError for what is none."""
    path = source.__fspath__() if isinstance(source, os.PathLike) else source
    if not isinstance(path, str):
        raise SettingsError(f"source must be a path or an address, as text or a Path, got {shown_value(source)}")
    return path


def _base(settings: object) -> Settings:
    """The settings that the keywords change. Raises SettingsError."""
    if settings is None or isinstance(settings, Settings):
        return settings or Settings()
    raise SettingsError(
        f"settings must be a Settings, got {shown_value(settings)}; single ones are keywords, such as budget=100"
    )


def _overridden(settings: Settings, overrides: Mapping[str, object]) -> Settings:
    if not overrides:
        return settings
    merged = settings.model_dump()
    for name, value in overrides.items():
        old = merged.get(name)
        merged[name] = {**old, **value} if isinstance(old, dict) and isinstance(value, dict) else value
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError(settings_problem(error)) from None


def _asked_by(sinks: Sequence[Sink], settings: Settings) -> Settings:
    """The settings with what the sinks need as well."""
    patches = settings.patches or any(sink.needs_patches for sink in sinks)
    heat = any(sink.needs_heat for sink in sinks) and "score" not in settings.maps
    return settings.model_copy(update={"patches": patches, "maps": (*settings.maps, *(("score",) if heat else ()))})


class Stream:
    """An iterator of Selections, and a context manager. Nothing runs before the first one is asked for."""

    def __init__(
        self,
        source: Source,
        settings: Settings,
        engine: Engine,
        feedback: Feedback,
        sinks: Sequence[Sink],
        decode_shares: Sharing = False,
        queries: Asked | None = None,
    ) -> None:
        self._encoder = queries.encoder if queries else None
        self._source = source
        self._feedback = feedback
        self._live = source if isinstance(source, LiveSource) else None
        self.settings = settings
        info = source.info
        config = {**settings.model_dump(mode="json"), "engine": engine.name}
        notes = (*info.notes, *engine.notes, *(queries.notes if queries else ()))
        header = Header(info.name, info.width, info.height, info.fps, config, info.start, notes)
        self.header = header
        # Without sinks there is nothing to do but to hand on: that needs no thread beside one that is never left.
        output_shares: Sharing = "always" if not sinks and engine.shares_thread == "always" else False
        # One thread that makes all of a frame would stand still while the next one is about to take it.
        room = 2 if engine.shares_thread == "always" else 1
        # No stage may hold the Stream: threads would keep one alive that nobody has any more, and its file open.
        self._runner = Runner(
            [
                Stage("decode", lambda _: _frames(source), shares=decode_shares),
                Stage("upload", engine.upload, shares=engine.shares_thread),
                Stage("pyramid", engine.pyramid, shares=engine.shares_thread),
                Stage("cascade", engine.cascade, room, shares=engine.shares_thread),
                Stage("output", lambda steps: _write(steps, sinks, header), room, shares=output_shares),
            ],
            in_flight=LIVE_IN_FLIGHT if self._live and settings.live.policy == "latest" else None,
            interrupt=self._live.cancel if self._live else None,
        )
        self._steps: Iterator[Step] | None = None
        self._frame: FrameView | None = None
        self._awaiting = Awaiting()

    @property
    def frame(self) -> FrameView | None:
        """The frame that the latest Selection was made of, ``rgb()`` included; None before the first one.

        With the CUDA engine its pixels lie on the GPU until they are asked for.
        """
        return self._frame

    @property
    def info(self) -> SourceInfo:
        """What is known of the source."""
        return self._source.info

    @property
    def damage(self) -> Damage:
        """What the source has lost so far."""
        return self._source.damage

    @property
    def status(self) -> Status | None:
        """How a live source fares; None for a file."""
        return None if self._live is None else self._live.status

    def set_paused(self, paused: bool) -> None:
        """Tell a live source that nobody takes its frames, on purpose: what it drops meanwhile counts as skipped."""
        if self._live is not None:
            (self._live.ledger.pause if paused else self._live.ledger.resume)()

    def report(self) -> tuple[StageReport, ...]:
        """Times of each stage so far."""
        return self._runner.report()

    def set_gaze(self, x: float, y: float) -> None:
        """Look at (x, y), in level-0 pixels, from the next frame on; it may lie outside the picture.

        Raises ValueError for what is no number, or beyond a million.
        """
        self._feedback.set_gaze((x, y))

    def clear_gaze(self) -> None:
        """Look at nothing in particular: the centre counts again."""
        self._feedback.set_gaze(None)

    def set_query(self, queries: Sequence[str]) -> tuple[str, ...]:
        """Look for ``queries``, written as in the settings, from the next frame on; none: for nothing in particular.

        They take the place of all that was looked for, pictures (``query_image``) as well.
        Returns what was not understood, a line each. The embeddings that are there are asked; nothing is encoded
        again. Raises ValueError for what the settings refuse, and where the stream keeps no embeddings.
        """
        if self._encoder is None:
            raise ValueError("the stream must be opened with a query, or with keep_embeddings, to be asked another one")
        try:
            compiled = compiled_queries(self._encoder, queries)
        except SettingsError as error:
            raise ValueError(str(error)) from None
        self._feedback.set_query(tuple(queries), compiled.program)
        return compiled.notes

    def set_budget(self, budget: int) -> None:
        """Give at most ``budget`` tokens from the next frame on. Raises ValueError for what the settings refuse."""
        self._feedback.set_budget(self._changed({"budget": budget}).budget)

    def set_keyframe_interval(self, frames: int) -> None:
        """Make a periodic keyframe every so many frames from now on. Raises ValueError for what the settings refuse."""
        changed = self._changed({"change": {"keyframe_interval": frames}})
        self._feedback.keyframe_interval = changed.change.keyframe_interval

    def _changed(self, wishes: Mapping[str, object]) -> Settings:
        """The settings with ``wishes``. Raises ValueError where they do not allow them."""
        try:
            return _overridden(self.settings, wishes)
        except SettingsError as error:
            raise ValueError(str(error)) from None

    def add_attention(self, index: int, weights: NDArray[np.floating]) -> None:
        """Feed back what attention, float[K] in [0, 1], the model gave to the tokens of frame ``index``.

        Raises ValueError for a frame that is no longer remembered, or weights of another length or range.
        """
        self._feedback.add_attention(index, weights)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Selection:
        if self._steps is None:
            self._steps = iter(self._runner)
        self._frame, selection = next(self._steps)
        return selection

    def __aiter__(self) -> AsyncGenerator[Selection]:
        """The Selections for ``async for``: they are waited for in a thread, while the event loop goes on.

        Leaving the loop, also by an error or because the task is cancelled, closes the stream; ``async with`` waits
        until it is.
        """
        return self._awaiting.selections(self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._awaiting.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def cancel(self) -> None:
        """Tell all stages to end, without waiting for them; the iteration ends. From any thread."""
        self._runner.cancel()

    def close(self) -> None:
        """End all stages and wait for them. Outputs are closed, and valid. Safe to call twice."""
        if self._steps is None:
            self._source.close()  # no thread has read it yet
        self._runner.close()


def _frames(source: Source) -> Iterator[Frame]:
    try:
        yield from source
    finally:
        source.close()


def _write(steps: Iterator[Step], sinks: Sequence[Sink], header: Header) -> Iterator[Step]:
    opened: list[Sink] = []
    failed = False
    try:
        for sink in sinks:
            sink.open(header)
            opened.append(sink)
        for step in stamped(steps):
            for sink in sinks:
                sink.write(step.frame, step.selection)
            yield step
    except Exception:
        failed = True
        raise
    finally:
        errors = _close_all(opened)
        if errors and not failed:  # what fails after another failure may well come of it
            raise errors[0]


def _close_all(sinks: Sequence[Sink]) -> list[Exception]:
    """Close every sink, also where one of them fails. Returns the failures."""
    errors: list[Exception] = []
    for sink in sinks:
        try:
            sink.close()
        except Exception as error:  # noqa: BLE001 - sinks of any make
            errors.append(error)
    return errors
