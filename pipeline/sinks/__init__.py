"""Sinks take Selections: JSON lines, Parquet, NPZ, safetensors, Rerun recordings, overlay video, HTML report."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT, is_mqtt
from foveate.pipeline.sinks.format import Format
from foveate.pipeline.sinks.overlay.shared import SharedPicture
from foveate.pipeline.sinks.rotation import RotatingSink, Rotation, set_aside

if TYPE_CHECKING:
    from foveate.pipeline.sinks.json_lines import read_json_lines
    from foveate.pipeline.sinks.shard_files import read_shards

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

# The Format of outputs, by suffix, and where it is: a module is imported when its sinks are needed.
_FORMATS: Final[Mapping[str, str]] = {
    ".jsonl": "json_lines:FORMAT",
    ".ndjson": "json_lines:FORMAT",
    ".npz": "shard_files:NPZ",
    ".safetensors": "shard_files:SAFETENSORS",
    ".parquet": "parquet:FORMAT",
    ".rrd": "recording.sink:FORMAT",
}
_OVERLAYS: Final = dict.fromkeys((".mp4", ".mkv", ".mov"), "overlay.sink:OverlaySink")
_REPORTS: Final = dict.fromkeys((".html", ".htm"), "report.sink:ReportSink")
_READERS: Final = {"read_json_lines": "json_lines:read_json_lines", "read_shards": "shard_files:read_shards"}
_WRITERS: Final = {
    "--overlay (open_overlay)": _OVERLAYS,
    "--report (open_report)": _REPORTS,
    "--out (open_sink)": _FORMATS,
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
    if is_mqtt(path):
        return _imported("mqtt:MqttSink")(path)
    if path == STANDARD_OUTPUT:
        return _imported(_FORMATS[".jsonl"]).sink(path)
    form = format_of(path)
    return form.sink(path) if rotation is None else RotatingSink(path, rotation, form)


def format_of(path: str) -> Format:
    """The Format of a file for tokens, by its suffix. Raises SettingsError for an unknown one."""
    form: Format = _by_suffix(
        path, "output", _FORMATS, f", {STANDARD_OUTPUT} for standard output, or mqtt://HOST/TOPIC"
    )
    return form


def open_overlay(path: str, rotation: Rotation | None = None, shared: SharedPicture | None = None) -> Sink:
    """The Sink for an overlay video's name, by its suffix, set aside by ``rotation`` where there is one.

    With ``shared``, which is for an overlay that is not set aside, a report of the same stream draws with it as well.
    Raises SettingsError for an unknown suffix.

    >>> with open_stream("clip.mp4", sinks=[open_overlay("seen.mp4")], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    """
    sink = _by_suffix(path, "overlay", _OVERLAYS)
    return sink(path, shared) if rotation is None else RotatingSink(path, rotation, Format(sink))


def open_report(path: str, shared: SharedPicture | None = None) -> Sink:
    """The Sink for a report's name, ``.html``; ``shared`` as above. Raises SettingsError for another suffix.

    >>> with open_stream("clip.mp4", sinks=[open_report("report.html")], source={"frames": 3}) as stream:
    ...     selections = list(stream)
    """
    return _by_suffix(path, "report", _REPORTS)(path, shared)


def open_sheet(path: str, layout: Sequence[str], number: int) -> Sink:
    """The Sink for a picture of the channels of ``layout`` in frame ``number``. Raises SettingsError for the suffix."""
    return _imported("channel_sheet:ChannelSheetSink")(path, layout, number)


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


def _by_suffix(path: str, kind: str, known: Mapping[str, str], others: str = "") -> Any:
    """What ``known`` names for the suffix of ``path``. Raises SettingsError, which names the ``others`` as well."""
    suffix = PurePath(path).suffix.lower()
    if suffix not in known:
        hint = next((f"{writer} writes such files; " for writer, table in _WRITERS.items() if suffix in table), "")
        possible = f"possible are {', '.join(known)}{others}"
        raise SettingsError(f"{kind} {path!r} has the unknown suffix {suffix!r}; {hint}{possible}")
    return _imported(known[suffix])


def __getattr__(name: str) -> Any:
    if name not in _READERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _imported(_READERS[name])


def _imported(name: str) -> Any:
    return resolve_name(f"{__name__}.{name}")
