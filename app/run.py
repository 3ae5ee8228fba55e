"""``foveate run``: a source in, tokens out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import PurePath
from typing import Protocol

from foveate.app.arguments import RunArguments
from foveate.app.console import Console
from foveate.app.damage import conclude
from foveate.app.inputs import refuse_inputs
from foveate.app.progress import progress
from foveate.app.signals import Interruption, interruptible
from foveate.app.streams import SelectionStream
from foveate.app.summary import print_summary
from foveate.app.tally import Tally
from foveate.app.unused import holds_arrays, unused
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.live.target import is_live
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import SharedPicture, Sink, open_overlay, open_report, open_sink
from foveate.pipeline.sinks.channel_sheet import ChannelSheetSink
from foveate.pipeline.sinks.encoding import EncodingSink, Once
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.schemes import may_end
from foveate.pipeline.timing import StageReport

_STANDARD_OUTPUT = "-"


class Stream(SelectionStream, Protocol):
    """What is needed of foveate.pipeline.stream.Stream."""

    @property
    def info(self) -> SourceInfo:
        """What is known of the source."""

    def report(self) -> tuple[StageReport, ...]:
        """Where the time of each stage went."""


class Opener(Protocol):
    """What is needed of foveate.pipeline.stream.open_stream."""

    def __call__(self, source: str, settings: Settings, /, *, sinks: Sequence[Sink]) -> Stream: ...


def run(arguments: RunArguments, open_stream: Opener, console: Console) -> int:
    """Write the tokens of every frame, and say on standard error how it goes. Returns the exit code.

    Raises SourceError, SettingsError, EngineError, SinkError, and BrokenPipeError where a reader went away.
    """
    if is_live(arguments.address) and not may_end(arguments.address):
        raise SourceError(f"{shown(arguments.address)} is a live source; give it to foveate live")
    outputs = _outputs(arguments)
    refuse_inputs((*outputs, *_pictures(arguments)), arguments.address, arguments.settings, arguments.encode)
    sheet = _sheet(arguments)
    idle = unused(arguments.settings, outputs) if sheet is None else None  # whose maps are shown
    if idle is not None:
        console.warn(idle)
    settings, sinks = _token_sinks(arguments, outputs)
    shared = SharedPicture()
    sinks += [open_overlay(name, shared=shared) for name in filter(None, [arguments.overlay])]
    sinks += [open_report(name, shared) for name in filter(None, [arguments.report])]
    sinks += filter(None, [sheet])
    tally = Tally()
    with Interruption() as interruption:
        try:
            stream = interruptible(lambda: open_stream(arguments.address, settings, sinks=sinks))
            with stream, progress(*_bar(stream, arguments, outputs)) as follow:
                for selection in stream:
                    tally.add(selection)
                    follow(selection, tally)
                    interruption.check()
        except KeyboardInterrupt:
            console.say(f"interrupted after {tally.frames} frames")
            return interruption.code
    if sheet is not None and not sheet.drawn:
        raise SourceError(f"{shown(arguments.address)} has {tally.frames} frames; --show-frame counts them from 0")
    return _conclude(stream, arguments, tally, console)


def _token_sinks(arguments: RunArguments, outputs: Sequence[str]) -> tuple[Settings, list[Sink]]:
    """What writes the tokens, with their embeddings where they are asked for, and the settings that those need."""
    sinks = {output: open_sink(output) for output in outputs}
    if arguments.encode is None:
        return arguments.settings, list(sinks.values())
    from foveate.app.encode import open_encoder, with_merge

    encoder = Once(open_encoder(arguments.encode, outputs))
    encoding = [EncodingSink(sink, encoder) if holds_arrays(output) else sink for output, sink in sinks.items()]
    return with_merge(arguments.settings, encoder, arguments.encode), encoding


def _outputs(arguments: RunArguments) -> tuple[str, ...]:
    """Where the tokens go. Raises SettingsError where two outputs are the same file."""
    pictures = _pictures(arguments)
    outputs = arguments.out or (() if pictures else (_STANDARD_OUTPUT,))
    places = [os.path.realpath(name) for name in (*outputs, *pictures)]
    for place, output in zip(places, outputs, strict=False):
        if places.count(place) > 1:
            raise SettingsError(f"--out {output!r} is named twice; give every output a file of its own")
    return outputs


def _pictures(arguments: RunArguments) -> list[str]:
    """The outputs that are pictures, moving or not."""
    sheet = None if arguments.sheet is None else arguments.sheet.path
    return [name for name in (arguments.overlay, arguments.report, sheet) if name is not None]


def _sheet(arguments: RunArguments) -> ChannelSheetSink | None:
    asked = arguments.sheet
    return None if asked is None else ChannelSheetSink(asked.path, asked.layout, asked.frame)


def _bar(stream: Stream, arguments: RunArguments, outputs: Sequence[str]) -> tuple[str, int | None, bool]:
    """Title, number of frames, and whether to show a bar at all."""
    known = [count for count in (stream.info.frames, arguments.settings.source.frames) if count]
    on_screen = _STANDARD_OUTPUT in outputs and sys.stdout is not None and sys.stdout.isatty()
    shown = not arguments.quiet and not on_screen and sys.stderr is not None and sys.stderr.isatty()
    return PurePath(stream.info.name).name or stream.info.name, min(known, default=None), shown


def _conclude(stream: Stream, arguments: RunArguments, tally: Tally, console: Console) -> int:
    """Say what was done and what was lost."""
    if not arguments.quiet:
        files = [name for name in (*arguments.out, *_pictures(arguments)) if name != _STANDARD_OUTPUT]
        print_summary(tally, stream.report(), files)
    return conclude(stream.damage, console)
