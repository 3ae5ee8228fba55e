"""open_stream: from the address of a video to an iterator of Selections."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import IO, TYPE_CHECKING, Literal, NamedTuple, Self, TypeGuard, Unpack

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.engine import Engine, live_decoding, open_decoder, open_engine
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.frames import Damage, Frame, FrameView, Source
from foveate.pipeline.info import EngineInfo, SourceInfo
from foveate.pipeline.keywords import SettingsKeywords, overridden
from foveate.pipeline.live.decoding import on_host
from foveate.pipeline.live.latency import with_latency
from foveate.pipeline.live.source import FiniteError, LiveSource
from foveate.pipeline.live.status import Listener, Status
from foveate.pipeline.live.target import is_live
from foveate.pipeline.plan import StreamPlan, plan_stream
from foveate.pipeline.regions import RegionTimeline
from foveate.pipeline.runner import Runner
from foveate.pipeline.selection import Header, Selection, Step
from foveate.pipeline.settings import Settings, SourceSettings, shown_value
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sources.address import Named, shown
from foveate.pipeline.sources.arrays import Layout
from foveate.pipeline.sources.decoding import Cancellable
from foveate.pipeline.sources.file_objects import FileObject
from foveate.pipeline.sources.own import OwnSource
from foveate.pipeline.sources.schemes import local, may_end
from foveate.pipeline.stream_controls import StreamControls
from foveate.pipeline.timing import StageReport

if TYPE_CHECKING:
    from foveate.pipeline.async_iteration import AsyncIteration

_LOG = logging.getLogger("foveate")

Expected = Literal["file", "live"]

LIVE_IN_FLIGHT = 2  # frames between a live source and the caller: more would only add delay


class Prepared(NamedTuple):
    """What a stream needs beside its source."""

    plan: StreamPlan
    feedback: Feedback
    engine: Engine


def open_stream(
    source: str | os.PathLike[str] | int | IO[bytes] | Iterable[object],
    settings: Settings | None = None,
    /,
    *,
    fps: float | None = None,
    layout: Layout = "rgb",
    sinks: Sequence[Sink] = (),
    listener: Listener | None = None,
    expect: Expected | None = None,
    name: str | None = None,
    **overrides: Unpack[SettingsKeywords],
) -> Stream:
    """Open ``source`` and get an iterator of Selections, one per frame.

    ``source`` is a path, a camera (its number, or /dev/videoN), a network address, a binary file object, or frames of
    your own: an iterable of pictures, or of pairs (time in seconds, picture). A picture is a NumPy array or a tensor
    (DLPack; one on a GPU is copied to the host) of uint8 [H, W], [H, W, 1 | 3 | 4] or [1 | 3 | 4, H, W], an image of
    PIL, or a frame of PyAV or torchcodec. They are copied, and never written to. ``layout`` is the order of the colours
    in arrays and tensors. Frames are taken in a thread of the stream, some ahead of the loop.

    ``fps`` is the rate of frames of your own, for the setting ``source.rate``: their times follow from it, unless they
    come in pairs. Without it, frames of PyAV and torchcodec have their own times. How many of them are processed
    a second is another setting, ``source.fps``.

    ``listener`` is called with every state of a live source, in one of the stream's threads. ``expect`` refuses what
    turns out to be the other one: a file, which has an end, or a live source. An address by HTTP may be either.

    ``name`` is what the header of outputs and messages call the source, in place of its address: that of the video of
    which it is a copy, for example. Passwords are removed from it.

    ``overrides`` are top-level fields of Settings (``budget=100``, ``allocation={"memory": "stream"}``), applied on top
    of ``settings``. Raises SettingsError, SourceError, EngineError; iterating also raises SinkError, SourceError for
    what is no picture, and what the iterable raises.

    >>> with open_stream("clip.mp4", budget=100, source={"fps": 1.0}) as stream:
    ...     for selection in stream:
    ...         assert len(selection) <= 100
    """
    if isinstance(source, int) and not isinstance(source, bool):
        source = f"/dev/video{source}"
    if isinstance(source, str | os.PathLike) or _is_file(source):
        _refuse_for_files(fps, layout)
    if name is not None and not (isinstance(name, str) and name.strip()):
        raise SettingsError(f"name must be a text that is not empty, got {shown_value(name)}")
    ready = prepared(settings, sinks, rated(overrides, fps))
    if not isinstance(source, str | os.PathLike) and not _is_file(source):
        return Stream(OwnSource(source, ready.plan.settings.source, fps is not None, layout, name), ready, sinks)
    address, kept = _address_of(source, name)
    try:
        return Stream(_opened(ready, address, listener, expect), ready, sinks, kept)
    except BaseException:
        if kept is not None:
            kept.close()
        raise


def _address_of(source: str | os.PathLike[str] | IO[bytes], name: str | None) -> tuple[str, FileObject | Named | None]:
    """The address to open, and what has to be closed after the source."""
    if isinstance(source, str | os.PathLike):
        address = local(os.fspath(source))
        return address, None if name is None else Named(address, name)
    kept = FileObject(source, name)
    return kept.path, kept


def prepared(
    settings: Settings | None,
    sinks: Sequence[Sink],
    overrides: Mapping[str, object],
    lockstep: bool = False,
    regions: RegionTimeline | None = None,
) -> Prepared:
    """The engine and what it works with; see open_engine for ``lockstep``. Raises SettingsError and EngineError.

    ``regions`` take the place of those of the settings.
    """
    plan, feedback = plan_stream(_asked_by(sinks, overridden(_base(settings), overrides))), Feedback()
    plan = plan if regions is None else replace(plan, regions=regions)
    for note in plan.queries.notes if plan.queries else ():
        _LOG.warning("%s", note)
    return Prepared(plan, feedback, open_engine(plan, feedback, lockstep))


def rated(overrides: Mapping[str, object], fps: float | None) -> Mapping[str, object]:
    """The keywords with ``fps`` as the setting source.rate."""
    if fps is None:
        return overrides
    source = overrides.get("source", {})
    source = source.model_dump() if isinstance(source, SourceSettings) else source
    return {**overrides, "source": {**source, "rate": fps}} if isinstance(source, dict) else overrides


def _base(settings: object) -> Settings:
    """The settings that the keywords change. Raises SettingsError."""
    if settings is None or isinstance(settings, Settings):
        return settings or Settings()
    raise SettingsError(
        f"settings must be a Settings, got {shown_value(settings)}; single ones are keywords, such as budget=100"
    )


def _refuse_for_files(fps: float | None, layout: str) -> None:
    """Raise SettingsError for arguments that are for frames of your own only."""
    if fps is not None:
        raise SettingsError(
            f"fps is for frames of your own, and the source is a file or an address, got {fps!r}; source={{'fps': 2}} "
            "processes two frames of a video a second"
        )
    if layout != "rgb":
        raise SettingsError(f"layout is for arrays of your own, and the source is a file or an address, got {layout!r}")


def _is_file(source: object) -> TypeGuard[IO[bytes]]:
    return hasattr(source, "read")


def _opened(ready: Prepared, address: str, listener: Listener | None, expect: Expected | None) -> Source:
    """The source at an address."""
    settings = ready.plan.settings
    if is_live(address) and not (expect == "file" and may_end(address)):
        try:
            decode = live_decoding(ready.engine, shown(address), settings.device or 0) or on_host
            return LiveSource(address, settings.live, settings.source, listener, decode)
        except FiniteError:
            if expect == "live":
                raise
    return open_decoder(ready.engine, address, settings.source, settings.live, settings.device or 0)


def _asked_by(sinks: Sequence[Sink], settings: Settings) -> Settings:
    """The settings with what the sinks need as well. Raises SettingsError for what is no Sink."""
    for sink in sinks:
        if not isinstance(sink, Sink):
            raise SettingsError(
                "a sink must have open, write, close, needs_patches, needs_heat and needs_query, as "
                f"foveate.pipeline.Sink says, got {shown_value(sink)}; for an output file, give open_sink(name)"
            )
    patches = settings.patches or any(sink.needs_patches for sink in sinks)
    heat = any(sink.needs_heat for sink in sinks) and "score" not in settings.maps
    asks = settings.keep_embeddings or bool(settings.query or settings.query_image)
    query = asks and any(sink.needs_query for sink in sinks) and "query" not in settings.maps
    added = [name for name, wanted in (("score", heat), ("query", query)) if wanted]
    return settings.model_copy(update={"patches": patches, "maps": (*settings.maps, *added)})


class Stream(StreamControls):
    """An iterator of Selections, and a context manager. Nothing runs before the first one is asked for.

    >>> with open_stream("clip.mp4") as stream:
    ...     selection = next(stream)
    ...     frame = stream.frame.rgb()
    >>> frame.shape
    (576, 768, 3)
    >>> stream.info.fps
    10.0
    """

    def __init__(
        self,
        source: Source,
        ready: Prepared,
        sinks: Sequence[Sink],
        kept: FileObject | Named | None = None,
    ) -> None:
        """``kept`` is closed behind the source."""
        plan, feedback, engine = ready
        super().__init__(plan, feedback)
        settings = plan.settings
        self._source, self._kept = source, kept
        self._live = source if isinstance(source, LiveSource) else None
        info = source.info
        config = {**settings.model_dump(mode="json"), "engine": engine.info.name}
        notes = (*info.notes, *engine.info.notes, *self.query_notes)
        ignored = plan.queries.ignored if plan.queries else ()
        header = Header(info.name, info.width, info.height, info.fps, config, info.start, notes, ignored)
        self.header = header
        # No stage may hold the Stream: threads would keep one alive that nobody has any more, and its file open.
        threads = engine.threads(source, Stage("decode", lambda _: _frames(source, kept)))
        output = Stage("output", lambda steps: _write(steps, sinks, header), threads[-1][-1].depth)
        self._runner = Runner(
            # Without sinks the output stage only passes Selections on, which needs no thread.
            [*threads, [output]] if sinks else [*threads[:-1], [*threads[-1], output]],
            in_flight=LIVE_IN_FLIGHT if self._live and settings.live.policy == "latest" else None,
            interrupt=source.cancel if isinstance(source, Cancellable) else None,
        )
        self._engine = engine.info
        self._steps: Iterator[Step] | None = None
        self._frame: FrameView | None = None

    def __repr__(self) -> str:
        info = self.info
        rate = "" if info.fps is None else f", {info.fps:g} fps"
        return f"Stream({info.name}, {info.width}x{info.height}{rate}, {self._engine.name})"

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
    def engine(self) -> EngineInfo:
        """Which engine it is, and what it leaves to the CPU."""
        return self._engine

    @property
    def damage(self) -> Damage:
        """What the source has lost so far."""
        return self._source.damage

    @property
    def status(self) -> Status | None:
        """State and counts of a live source; None for a file."""
        return None if self._live is None else self._live.status

    def set_paused(self, paused: bool) -> None:
        """Tell a live source that nobody takes its frames, on purpose: what it drops meanwhile counts as skipped."""
        if self._live is not None:
            (self._live.counts.pause if paused else self._live.counts.resume)()

    def report(self) -> tuple[StageReport, ...]:
        """Times of each stage so far."""
        return self._runner.report()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Selection:
        if self._steps is None:
            self._steps = iter(self._runner)
        self._frame, selection = next(self._steps)
        return selection

    def drain(self) -> None:
        """Read on to the end, for streams of which only sinks take the Selections: cheaper than an empty loop."""
        if self._steps is None:
            self._steps = iter(())
            self._runner.drain()
        else:
            for _ in self._steps:
                pass

    def __aiter__(self) -> AsyncGenerator[Selection]:
        """The Selections for ``async for``: they are waited for in a thread, while the event loop goes on.

        Leaving the loop, also by an error or because the task is cancelled, closes the stream; ``async with`` waits
        until it is.
        """
        return self._async_iteration.selections(self)

    @cached_property
    def _async_iteration(self) -> AsyncIteration:
        from foveate.pipeline.async_iteration import AsyncIteration  # asyncio is for those who use it

        return AsyncIteration()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._async_iteration.end(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def cancel(self) -> None:
        """Tell all stages to end, without waiting for them; the iteration ends. From any thread."""
        self._runner.cancel()

    def close(self) -> None:
        """End all stages and wait for them. Outputs are closed, and valid. Safe to call twice."""
        if self._steps is None:
            _close_source(self._source, self._kept)  # no thread has read it yet
        self._runner.close()


def _frames(source: Source, kept: FileObject | Named | None) -> Iterator[Frame]:
    try:
        yield from source
    finally:
        _close_source(source, kept)


def _close_source(source: Source, kept: FileObject | Named | None) -> None:
    try:
        source.close()
    finally:
        if kept is not None:
            kept.close()


def _write(steps: Iterator[Step], sinks: Sequence[Sink], header: Header) -> Iterator[Step]:
    opened: list[Sink] = []
    failed = False
    try:
        for sink in sinks:
            sink.open(header)
            opened.append(sink)
        for step in with_latency(steps, header.source):
            for sink in sinks:
                sink.write(step.frame, step.selection)
            yield step
            del step  # not to be held while waiting for the next one
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
