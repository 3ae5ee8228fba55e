"""What the user typed behind ``foveate corpus``, checked."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from foveate.app.addresses import hide_in_title
from foveate.app.arguments import parsed_settings
from foveate.app.console import Console
from foveate.app.flags import corpus_flags
from foveate.app.quantities import seconds_in
from foveate.pipeline.corpus.build import WHOLE, Manner
from foveate.pipeline.corpus.jobs import Task
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.sources.address import is_network

_SHARD: Final = re.compile(r"(\d{1,9})/(\d{1,9})")
_MOST_WORKERS: Final = 256  # processes, each with two pipes
_MOST_ACTORS: Final = 10_000


@dataclass(frozen=True, slots=True)
class CorpusArguments:
    """One ``foveate corpus``."""

    addresses: tuple[str, ...]
    task: Task
    manner: Manner
    quiet: bool = False


def corpus_arguments(arguments: Sequence[str], console: Console) -> CorpusArguments:
    """Parse what follows ``foveate corpus``. Raises SettingsError; SystemExit(0) after printing the help."""
    parsed, settings = parsed_settings(corpus_flags, arguments, "corpus")
    hide_in_title(arguments)
    if not parsed.addresses:
        raise SettingsError("SOURCE is missing; see foveate corpus --help")
    if not parsed.out:
        raise SettingsError("--out is missing: where the corpus goes, a folder or s3://BUCKET/PATH")
    for address in (*parsed.addresses, parsed.out):
        console.learn(address)
    segment = None if parsed.segment is None else seconds_in(parsed.segment, "--segment")
    store = parsed.out if is_network(parsed.out) else os.path.abspath(parsed.out)  # noqa: PTH100 - links are kept
    task = Task(store, _checked(settings, segment), "webdataset" if settings.patches else "parquet", segment)
    return CorpusArguments(parsed.addresses, task, _manner(parsed), parsed.quiet)


def _manner(parsed: object) -> Manner:
    known = {name: getattr(parsed, name) for name in ("workers", "limit", "retry", "shard", "ray", "ray_gpus", "debug")}
    if known["workers"] is not None:
        check_count("workers", known["workers"], 0, _MOST_WORKERS if known["ray"] is None else _MOST_ACTORS)
    limit = None if known["limit"] is None else seconds_in(known["limit"], "--limit")
    if limit is not None and known["workers"] == 0 and known["ray"] is None:
        raise SettingsError("--limit needs workers that can be stopped; leave out --workers 0")
    if known["ray_gpus"] and known["ray"] is None:
        raise SettingsError("--ray-gpus needs --ray ADDRESS")
    if not 0 <= known["ray_gpus"] <= _MOST_ACTORS:
        raise SettingsError(f"--ray-gpus must be 0 or more, got {known['ray_gpus']:g}")
    workers = known["workers"] if known["ray"] is None else known["workers"] or None
    return Manner(
        workers, limit, known["retry"], _shard(known["shard"]), known["ray"], known["ray_gpus"], known["debug"]
    )


def _checked(settings: Settings, segment: float | None) -> Settings:
    """The settings, in which nothing contradicts the corpus."""
    if settings.device_patches:
        raise SettingsError("--device-patches is for programs, and a corpus is files; leave it out")
    source = settings.source
    if segment is not None and (source.start, source.end, source.frames) != (None, None, None):
        raise SettingsError("--segment takes whole videos; leave out --start, --end and --frames")
    return settings


def _shard(text: str | None) -> tuple[int, int]:
    """(i, n) of ``i/n``. Raises SettingsError."""
    if text is None:
        return WHOLE
    found = _SHARD.fullmatch(text)
    number, count = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= number <= count:
        raise SettingsError(f"--shard must be I/N with I from 1 to N, such as 3/16, got {text!r}")
    return number, count
