"""Which jobs are done, and which failed: one small file each, written when everything else of the job is."""

from __future__ import annotations

import json
from collections.abc import Collection
from itertools import chain
from typing import Any, Final

from foveate.pipeline.corpus.jobs import Outcome, Task
from foveate.pipeline.corpus.names import natural_order
from foveate.pipeline.corpus.store import Store
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks.header import version

DESCRIPTION: Final = "corpus.json"
INDEX: Final = "index.jsonl"
FRAMES: Final = "frames"
_DONE: Final = "_done"
_FAILED: Final = "_failed"
_SEGMENTS: Final = "_segments"
_SUFFIX: Final = ".json"


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

    def failures(self) -> list[Outcome]:
        """The jobs that failed, in order."""
        held = self._store.read_all(_FAILED).values()
        outcomes = [Outcome(**{**json.loads(content), "state": "failed"}) for content in held]
        return sorted(outcomes, key=lambda each: natural_order(each.video))

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
        held = self._store.read_all(_SEGMENTS)
        return {name.removesuffix(_SUFFIX): json.loads(content)["segments"] for name, content in held.items()}

    def write_index(self) -> int:
        """Write one line for each job that is done, in order. Returns how many there are."""
        records = [json.loads(content) for content in self._store.read_all(_DONE).values()]
        records.sort(key=lambda record: (natural_order(record["video"]), record["video"], record["segment"] or 0))
        lines = [json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records]
        self._store.write(INDEX, "".join(lines).encode("utf-8", "replace"))
        return len(records)


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
