"""From video to tokens. What a program needs is here; the modules below may change with any version.

>>> from foveate.pipeline import open_stream
>>> with open_stream("sample_videos/pedestrians.mp4", budget=100) as stream:
...     selection = next(stream)
>>> len(selection) <= 100
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from foveate.pipeline.errors import (
        EngineError,
        FoveateError,
        ModelError,
        SettingsError,
        SinkError,
        SourceError,
    )
    from foveate.pipeline.frames import Frame, FrameView
    from foveate.pipeline.info import EngineInfo, SourceInfo
    from foveate.pipeline.picture_regions import tokens_in_regions
    from foveate.pipeline.push_stream import PushStream, open_push_stream
    from foveate.pipeline.selection import Header, NaFlex, Selection
    from foveate.pipeline.settings import Settings
    from foveate.pipeline.sinks import (
        Rotation,
        Sink,
        open_overlay,
        open_report,
        open_sink,
        read_json_lines,
        read_shards,
        rotated_files,
    )
    from foveate.pipeline.stream import Stream, open_stream

__all__ = [
    "EngineError",
    "EngineInfo",
    "FoveateError",
    "Frame",
    "FrameView",
    "Header",
    "ModelError",
    "NaFlex",
    "PushStream",
    "Rotation",
    "Selection",
    "Settings",
    "SettingsError",
    "Sink",
    "SinkError",
    "SourceError",
    "SourceInfo",
    "Stream",
    "open_overlay",
    "open_push_stream",
    "open_report",
    "open_sink",
    "open_stream",
    "read_json_lines",
    "read_shards",
    "rotated_files",
    "tokens_in_regions",
]

_MODULES: Final = {
    "errors": ("EngineError", "FoveateError", "ModelError", "SettingsError", "SinkError", "SourceError"),
    "frames": ("Frame", "FrameView"),
    "info": ("EngineInfo", "SourceInfo"),
    "picture_regions": ("tokens_in_regions",),
    "push_stream": ("PushStream", "open_push_stream"),
    "selection": ("Header", "NaFlex", "Selection"),
    "settings": ("Settings",),
    "sinks": (
        *("Rotation", "Sink", "open_overlay", "open_report", "open_sink"),
        *("read_json_lines", "read_shards", "rotated_files"),
    ),
    "stream": ("Stream", "open_stream"),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: settings alone need neither decoders nor engines."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"foveate.pipeline.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
