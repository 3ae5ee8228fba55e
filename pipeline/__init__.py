"""From video to tokens: frames, sources, runner, engines, cascade, sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foveate.pipeline.stream import Stream, open_stream

__all__ = ["Stream", "open_stream"]


def __getattr__(name: str) -> Any:
    """Import the decoders and engines only when a stream is opened: settings alone need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from foveate.pipeline import stream

    return getattr(stream, name)
