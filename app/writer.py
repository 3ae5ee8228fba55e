"""One video to its outputs: what ``foveate run`` does for each video."""

import sys
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path, PurePath
from typing import Protocol

from foveate.app.arguments import PLACE, RunArguments
from foveate.app.outputs import pictures_of, tokens_of
from foveate.app.progress import Follower
from foveate.app.signals import Interruption
from foveate.app.standard_output import is_terminal
from foveate.app.streams import SelectionStream
from foveate.app.tally import Tally, TallySink
from foveate.app.unused import holds_arrays
from foveate.pipeline.corpus.names import Input
from foveate.pipeline.errors import SourceError
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.live.target import refuse_live
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import SharedPicture, Sink, open_overlay, open_report, open_sheet, open_sink
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT, cannot_write, is_mqtt
from foveate.pipeline.sinks.encoding import Encoder, EncodingSink, Once
from foveate.pipeline.sources.address import shown
from foveate.pipeline.timing import StageReport


class Stream(SelectionStream, Protocol):
    """The part of foveate.pipeline.stream.Stream that is used here."""

    @property
    def info(self) -> SourceInfo:
        """What is known of the source."""

    def report(self) -> tuple[StageReport, ...]:
        """The times of each stage."""


class Opener(Protocol):
    """The part of foveate.pipeline.stream.open_stream that is used here."""

    def __call__(self, source: str, settings: Settings, /, *, sinks: Sequence[Sink]) -> Stream: ...


class Writer:
    """Opens the stream of a video with the sinks of its outputs, and runs it to its end."""

    def __init__(self, arguments: RunArguments, tokens: Sequence[str], open_stream: Opener) -> None:
        """``tokens`` are the outputs that hold tokens, as typed.

        Raises SettingsError, also where ``--encode`` does not fit the settings, and ModelError.
        """
        self.arguments = arguments
        self._open_stream = open_stream
        self._encoder: Encoder | None = None
        self._settings = arguments.settings
        if arguments.encode is not None:
            from foveate.app.encode import open_encoder, with_merge

            self._encoder = open_encoder(arguments.encode, tokens)
            self._settings = with_merge(arguments.settings, self._encoder, arguments.encode)

    def open(self, video: Input, tally: Tally) -> Stream:
        """The stream of a video, whose frames ``tally`` counts. Raises SourceError, SettingsError and EngineError."""
        refuse_live(video.address, shown(video.address))
        sinks = [*self._sinks(self.arguments.named(video.name)), TallySink(tally)]
        return self._open_stream(video.address, self._settings, sinks=sinks)

    def write(self, stream: Stream, video: Input, tally: Tally, follow: Follower, interruption: Interruption) -> None:
        """Run ``stream``, that of ``video``, to its end, and show how it goes.

        Raises what the stream raises, and KeyboardInterrupt.
        """
        with stream:
            self._make_folders(video)
            for selection in stream:
                follow(selection, tally)
                interruption.check()
        sheet = self.arguments.sheet
        if sheet is not None and tally.frames <= sheet.frame:
            raise SourceError(f"{shown(video.address)} has {tally.frames} frames; --show-frame counts them from 0")

    def files(self, video: Input) -> list[str]:
        """The outputs of a video that are files."""
        named = self.arguments.named(video.name)
        return [
            name for name in (*tokens_of(named), *pictures_of(named)) if name != STANDARD_OUTPUT and not is_mqtt(name)
        ]

    def title(self, stream: Stream) -> tuple[str, int | None]:
        """The title of a stream's progress bar, and the number of frames, None if unknown."""
        known = [count for count in (stream.info.frames, self.arguments.settings.source.frames) if count]
        return PurePath(stream.info.name).name or stream.info.name, min(known, default=None)

    @cached_property
    def shown(self) -> bool:
        """Whether to show progress: on a terminal to which no records are written."""
        on_screen = STANDARD_OUTPUT in tokens_of(self.arguments) and is_terminal()
        return not self.arguments.quiet and not on_screen and sys.stderr is not None and sys.stderr.isatty()

    def _make_folders(self, video: Input) -> None:
        """Make the folders of outputs that follow from the video's name or are in --out-dir."""
        typed = (*tokens_of(self.arguments), *pictures_of(self.arguments))
        if self.arguments.out_dir is None and not any(PLACE in name for name in typed):
            return
        for name in self.files(video):
            try:
                Path(name).parent.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise cannot_write(name, error) from error

    def _sinks(self, arguments: RunArguments) -> list[Sink]:
        """The sinks for the outputs of one video, which ``arguments`` name."""
        encoder = None if self._encoder is None else Once(self._encoder)
        shared, sheet = SharedPicture(), arguments.sheet
        sinks = [_token_sink(output, encoder) for output in tokens_of(arguments)]
        sinks += [open_overlay(name, shared=shared) for name in filter(None, [arguments.overlay])]
        sinks += [open_report(name, shared) for name in filter(None, [arguments.report])]
        sinks += [] if sheet is None else [open_sheet(sheet.path, sheet.layout, sheet.frame)]
        return sinks


def _token_sink(output: str, encoder: Encoder | None) -> Sink:
    """The sink for tokens, with embeddings if they are wanted and the output can hold them."""
    sink = open_sink(output)
    return sink if encoder is None or not holds_arrays(output) else EncodingSink(sink, encoder)
