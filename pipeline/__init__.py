"""From video to tokens: frames, sources, runner, engines, cascade, sinks."""

from foveate.pipeline.stream import Stream, open_stream

__all__ = ["Stream", "open_stream"]
