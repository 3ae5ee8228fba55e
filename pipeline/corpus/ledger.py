"""Which jobs are done, and which failed: one small file each, written when everything else of the job is."""

import contextlib
import json
from collections.abc import Callable, Collection
from functools import partial
from itertools import chain
from typing import Any, Final

from foveate.pipeline.corpus.jobs import Outcome, Task
from foveate.pipeline.corpus.names import natural_order
from foveate.pipeline.corpus.store import Store
from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.sinks.header import version

DESCRIPTION: Final = "corpus.json"
INDEX: Final = "index.jsonl"
FAILURES: Final = "failures.jsonl"
FRAMES: Final = "frames"
_DONE: Final = "_done"
_FAILED: Final = "_failed"
_SEGMENTS: Final = "_segments"
_SUFFIX: Final = ".json"

Records = dict[str, dict[str, Any]]
"""What is known of jobs, by their keys."""


class Ledger:
    """What the store says of jobs. Every method raises SinkError."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def describe(self, task: Task) -> None:
        """Write what the corpus is made with. Raises SettingsError where another was begun in the same place."""
        description = {
            "foveate": version(),
            "kind": task.kind,
            "segment": task.segment,
            "settings": task.settings.model_dump(mode="json", exclude={"device"}),  # machines may use another GPU each
        }
        found = self._store.read(DESCRIPTION)
        if found is not None and (differing := _difference(found, description)):
            raise SettingsError(f"{task.store} holds a corpus of other settings ({differing}); name another place")
        self._store.write(DESCRIPTION, _json(description))

    def done(self) -> Collection[str]:
        """The keys of jobs that are done."""
        return {name.removesuffix(_SUFFIX) for name in self._store.names(_DONE)}

    def failed(self) -> Collection[str]:
        """The keys of jobs that failed."""
        return {name.removesuffix(_SUFFIX) for name in self._store.names(_FAILED)}

    def keep(self, outcome: Outcome) -> None:
        """Write what became of a job; what an earlier run said of it is removed."""
        name = outcome.key + _SUFFIX
        if outcome.state == "failed":
            self._store.write(f"{_FAILED}/{name}", _json(outcome.record))
            return
        folder, record = (_DONE, outcome.record)
        if outcome.segments is not None:
            folder, record = (_SEGMENTS, {"video": outcome.video, "segments": outcome.segments})
        self._store.write(f"{folder}/{name}", _json(record))
        self._store.remove(f"{_FAILED}/{name}")

    def segments(self) -> dict[str, int]:
        """How many segments videos have, by the keys of the jobs that measured them."""
        return {key: record["segments"] for key, record in self._records(_SEGMENTS, self._counted).items()}

    def write_tables(self) -> list[Outcome]:
        """Write one line for each job that is done, in order, and one for each that failed; returns those."""
        self._write_table(INDEX, self._records(_DONE, partial(self._table, INDEX)))
        failed = self._records(_FAILED, partial(self._table, FAILURES))
        if failed:
            self._write_table(FAILURES, failed)
        else:
            self._store.remove(FAILURES)
        return [Outcome(**{**record, "state": "failed"}) for record in failed.values()]

    def _records(self, folder: str, known: Callable[[], Records]) -> Records:
        """What the files of a folder say, by key, in the order of videos; ``known`` is what they may well say."""
        held = self._store.read_all(folder, lambda: {key + _SUFFIX: _json(record) for key, record in known().items()})
        records = {
            name.removesuffix(_SUFFIX): _parsed(f"{folder}/{name}", content)
            for name, content in held.items()
            if name.endswith(_SUFFIX)
        }
        return dict(sorted(records.items(), key=lambda item: _order(item[1])))

    def _table(self, name: str) -> Records:
        """A table as an earlier run wrote it; empty where it cannot be read."""
        with contextlib.suppress(ValueError, KeyError, TypeError):
            return {line["key"]: line for line in map(json.loads, (self._store.read(name) or b"").splitlines())}
        return {}

    def _counted(self) -> Records:
        """What was measured of videos, provided that all their segments are done."""
        ends: dict[str, dict[str, Any]] = {}
        for key, line in self._table(INDEX).items():
            if line["segment"] is not None:
                video = ends.setdefault(key.rpartition("-")[0], {"video": line["video"], "segments": 0})
                video["segments"] = max(video["segments"], line["segment"] + 1)
        return ends

    def _write_table(self, name: str, records: Records) -> None:
        lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in records.values()]
        self._store.write(name, "".join(lines).encode("utf-8", "replace"))


def _parsed(name: str, content: bytes) -> dict[str, Any]:
    """A file of the ledger. Raises SinkError where it is none."""
    with contextlib.suppress(ValueError):
        record = json.loads(content)
        if isinstance(record, dict) and isinstance(record.get("video"), str):
            return record
    raise SinkError(f"{name} is no record of Foveate's; remove it, and the job is done again")


def _order(record: dict[str, Any]) -> Any:
    return natural_order(record["video"]), record["video"], record.get("segment") or 0


def _difference(found: bytes, wanted: dict[str, Any]) -> str:
    """The first entry in which a description differs, with both values; empty where none does."""
    try:
        there = json.loads(found)
    except ValueError:
        return f"{DESCRIPTION} is no JSON"
    before, after = _leaves(there), _leaves(wanted)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            return f"{name.removeprefix('settings.')}: {before.get(name)!r} there, {after.get(name)!r} here"
    return ""


def _leaves(tree: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {name: tree}
    parts = [_leaves(part, f"{name}.{each}".strip(".")) for each, part in tree.items()]
    return dict(chain.from_iterable(part.items() for part in parts))


def _json(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "replace")
