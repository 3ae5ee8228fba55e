"""Sinks take Selections: JSON lines, Parquet, NPZ, safetensors, overlay video."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Final

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sinks.json_lines import STANDARD_OUTPUT, JsonLinesSink, read_json_lines
from foveate.pipeline.sinks.overlay import OverlaySink
from foveate.pipeline.sinks.parquet import ParquetSink
from foveate.pipeline.sinks.rotation import RotatingLinesSink, Rotation
from foveate.pipeline.sinks.shard_files import npz_sink, read_shards, safetensors_sink

__all__ = ["Rotation", "Sink", "open_overlay", "open_sink", "read_json_lines", "read_shards"]

_SINKS: Final[Mapping[str, Callable[[str], Sink]]] = {
    ".jsonl": JsonLinesSink,
    ".ndjson": JsonLinesSink,
    ".npz": npz_sink,
    ".safetensors": safetensors_sink,
    ".parquet": ParquetSink,
}
_OVERLAYS: Final[Mapping[str, Callable[[str], Sink]]] = {
    ".mp4": OverlaySink,
    ".mkv": OverlaySink,
    ".mov": OverlaySink,
}


def open_sink(path: str, rotation: Rotation | None = None) -> Sink:
    """The Sink for an output's name, by its suffix; ``-`` is JSON lines to standard output.

    With a ``rotation``, JSON lines in files are set aside by it, and never written over. Nothing is written before
    Sink.open. Raises SettingsError for an unknown suffix.
    """
    if path == STANDARD_OUTPUT:
        return JsonLinesSink(path)
    if rotation is not None and _SINKS.get(PurePath(path).suffix.lower()) is JsonLinesSink:
        return RotatingLinesSink(path, rotation)
    return _by_suffix(path, "output", _SINKS, f"{', '.join(_SINKS)}, or {STANDARD_OUTPUT} for standard output")(path)


def open_overlay(path: str) -> Sink:
    """The Sink for an overlay video's name, by its suffix. Raises SettingsError for an unknown one."""
    return _by_suffix(path, "overlay", _OVERLAYS, ", ".join(_OVERLAYS))(path)


def _by_suffix(
    path: str, kind: str, sinks: Mapping[str, Callable[[str], Sink]], possible: str
) -> Callable[[str], Sink]:
    suffix = PurePath(path).suffix.lower()
    if suffix not in sinks:
        raise SettingsError(f"{kind} {path!r} has the unknown suffix {suffix!r}; possible are {possible}")
    return sinks[suffix]
