"""Reads earlier records, for comparisons and reports."""

import json
from pathlib import Path
from typing import Any

from foveate.pipeline.errors import SourceError
from foveate.pipeline.small_files import small_text

Record = dict[str, Any]
Case = dict[str, Any]

_MOST_BYTES = 64 * 2**20  # a record holds raw samples


def read_record(path: Path) -> Record:
    """A record of any measure in this room: an object with ``command``, ``machine`` and ``cases``, each with a name.

    Raises SourceError, one line, for anything else.
    """
    try:
        record = json.loads(small_text(path, _MOST_BYTES))
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        raise SourceError(f"{path} is no record of foveate bench: it is not JSON") from None
    if not is_record(record):
        raise SourceError(f"{path} is no record of foveate bench with cases")
    return record


def is_record(value: object) -> bool:
    """Whether it has the fields of a record with cases."""
    if not isinstance(value, dict) or not isinstance(value.get("command"), str):
        return False
    cases = value.get("cases")
    if not isinstance(value.get("machine"), dict) or not isinstance(cases, list):
        return False
    return all(isinstance(case, dict) and isinstance(case.get("name"), str) for case in cases)


def title(record: Record) -> str:
    """What was measured, in a few words."""
    suite = record.get("suite")
    return f"{suite} suite{', quick' if record.get('quick') else ''}" if suite else str(record["command"])


def machine(record: Record) -> str:
    """Where it was measured: processor and cores, and the card where there is one."""
    about = record["machine"]
    place = f"{about.get('processor', '?')}, {about.get('cores', '?')} cores"
    return f"{record['card']}; {place}" if record.get("card") else place


def commit(record: Record) -> str:
    """The program's commit, with + where files differed from it."""
    found = record.get("commit")
    return f"{found[:10]}{'+' if record.get('dirty') else ''}" if found else "no commit"


def value_at(case: Case, key: str) -> Any:
    """The value at a dotted key such as ``steady.p50_ms``; None if there is none. In a list, items go by name."""
    found: Any = case
    for part in key.split("."):
        if isinstance(found, list):
            found = next((item for item in found if isinstance(item, dict) and item.get("name") == part), None)
        else:
            found = found.get(part) if isinstance(found, dict) else None
    return found
