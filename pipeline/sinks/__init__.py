"""Sinks take Selections: JSON lines, Parquet, NPZ, safetensors, Rerun recordings, overlay video, HTML report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Final, TypeVar

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sinks.json_lines import STANDARD_OUTPUT, JsonLinesSink, read_json_lines, whole_records
from foveate.pipeline.sinks.mqtt import MqttSink, is_mqtt
from foveate.pipeline.sinks.overlay.picture import SharedPicture
from foveate.pipeline.sinks.overlay.sink import OverlaySink
from foveate.pipeline.sinks.parquet import ParquetSink
from foveate.pipeline.sinks.recording.sink import RecordingSink
from foveate.pipeline.sinks.report.sink import ReportSink
from foveate.pipeline.sinks.rotation import Kind, RotatingSink, Rotation, set_aside
from foveate.pipeline.sinks.shard_files import read_shards, save_npz, save_safetensors
from foveate.pipeline.sinks.shards import SHARD_BYTES, ShardPart, ShardSink

__all__ = [
    "Rotation",
    "SharedPicture",
    "Sink",
    "open_overlay",
    "open_report",
    "open_sink",
    "read_json_lines",
    "read_shards",
    "rotated_files",
]

_T = TypeVar("_T")

_PARQUET_SECONDS: Final = 3600.0  # that may be lost; and its index grows in memory with the file
_RECORDING_BYTES: Final = 1 << 28  # the viewer holds a recording in memory
_SINKS: Final[Mapping[str, Callable[[str], Sink]]] = {
    ".jsonl": JsonLinesSink,
    ".ndjson": JsonLinesSink,
    ".npz": partial(ShardSink, save=save_npz),
    ".safetensors": partial(ShardSink, save=save_safetensors),
    ".parquet": ParquetSink,
    ".rrd": RecordingSink,
}
_OVERLAYS: Final[Mapping[str, type[OverlaySink]]] = {
    ".mp4": OverlaySink,
    ".mkv": OverlaySink,
    ".mov": OverlaySink,
}
_REPORTS: Final[Mapping[str, type[ReportSink]]] = {".html": ReportSink, ".htm": ReportSink}


def _not_empty(path: Path) -> bool:
    return path.stat().st_size > 0


_LINES: Final = Kind(JsonLinesSink, whole_records)
_OVERLAY: Final = Kind(OverlaySink, _not_empty)
KINDS: Final[Mapping[str, Kind]] = {  # of outputs that are rotated
    ".jsonl": _LINES,
    ".ndjson": _LINES,
    ".npz": Kind(partial(ShardPart, save=save_npz), _not_empty, size=SHARD_BYTES),
    ".safetensors": Kind(partial(ShardPart, save=save_safetensors), _not_empty, size=SHARD_BYTES),
    ".parquet": Kind(ParquetSink, _not_empty, seconds=_PARQUET_SECONDS),
    ".rrd": Kind(RecordingSink, _not_empty, size=_RECORDING_BYTES),
}


def open_sink(path: str, rotation: Rotation | None = None) -> Sink:
    """The Sink for an output's name, by its suffix; ``-`` is JSON lines to standard output.

    ``mqtt://[user:password@]host[:port]/topic`` publishes short records, and is not rotated.

    With a ``rotation``, files are set aside by it, and never written over: NPZ and safetensors also where they hold 64
    MiB, Parquet after an hour where the rotation says neither size nor time. Nothing is written before Sink.open.
    Raises SettingsError for an unknown suffix.

    >>> with open_stream("clip.mp4", sinks=[open_sink("tokens.jsonl")], source={"frames": 3}) as stream:
    ...     count = sum(len(selection) for selection in stream)
    """
    if path == STANDARD_OUTPUT:
        return JsonLinesSink(path)
    if is_mqtt(path):
        return MqttSink(path)
    possible = f"{', '.join(_SINKS)}, {STANDARD_OUTPUT} for standard output, or mqtt://HOST/TOPIC"
    if rotation is not None:
        return RotatingSink(path, rotation, _by_suffix(path, "output", KINDS, possible))
    return _by_suffix(path, "output", _SINKS, possible)(path)


def open_overlay(path: str, rotation: Rotation | None = None, shared: SharedPicture | None = None) -> Sink:
    """The Sink for an overlay video's name, by its suffix, set aside by ``rotation`` where there is one.

    With ``shared``, which is for an overlay that is not set aside, a report of the same stream draws with it as well.
    Raises SettingsError for an unknown suffix.

    >>> with open_stream("clip.mp4", sinks=[open_overlay("seen.mp4")], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    """
    sink = _by_suffix(path, "overlay", _OVERLAYS, ", ".join(_OVERLAYS))
    return sink(path, shared) if rotation is None else RotatingSink(path, rotation, _OVERLAY)


def open_report(path: str, shared: SharedPicture | None = None) -> Sink:
    """The Sink for a report's name, ``.html``; ``shared`` as above. Raises SettingsError for another suffix.

    >>> with open_stream("clip.mp4", sinks=[open_report("report.html")], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    """
    return _by_suffix(path, "report", _REPORTS, ", ".join(_REPORTS))(path, shared)


def rotated_files(path: str | Path) -> list[Path]:
    """The files of an output that was rotated, the oldest first; the last is ``path`` itself, if it is there.

    Raises OSError where the folder cannot be read.

    >>> rotation = Rotation(seconds=3600, keep=48)
    >>> with open_stream("clip.mp4", sinks=[open_sink("hours.jsonl", rotation)], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    >>> [path.name for path in rotated_files("hours.jsonl")]
    ['hours.jsonl']
    """
    own = Path(path)
    return [each for _, each in set_aside(own)] + ([own] if own.exists() else [])


def _by_suffix(path: str, kind: str, sinks: Mapping[str, _T], possible: str) -> _T:
    suffix = PurePath(path).suffix.lower()
    if suffix not in sinks:
        raise SettingsError(f"{kind} {path!r} has the unknown suffix {suffix!r}; possible are {possible}")
    return sinks[suffix]
