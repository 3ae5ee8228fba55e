"""From video to tokens: frames, sources, runner, engines, cascade, sinks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foveate.pipeline.pushing import PushStream, open_push_stream
    from foveate.pipeline.stream import Stream, open_stream

__all__ = ["PushStream", "Stream", "open_push_stream", "open_stream"]


def __getattr__(name: str) -> Any:
    """Import the decoders and engines only when a stream is opened: settings alone need none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "pushing" if name in ("PushStream", "open_push_stream") else "stream"
    return getattr(import_module(f"foveate.pipeline.{module}"), name)
