"""The page of all settings, written from the Settings tree and the flags of the command line:

python -m foveate.app.settings_page docs/settings.md
"""

import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, get_args, get_origin

import orjson
from pydantic.fields import FieldInfo

from foveate.app.flags import SHORT, spelling
from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import Keys, leaves
from foveate.pipeline.settings_texts import text_of
from foveate.pipeline.timecode import Seconds

_INTRODUCTION: Final = """\
# Settings

Every setting of `foveate run`, `foveate live` and `open_stream`. A key is the setting's place in a TOML file:
`allocation.memory` is `memory` in the table `[allocation]`. In Python, the same setting is the keyword
`open_stream(..., allocation={"memory": "stream"})`. A value that is out of range or of the wrong type, or a key that
does not exist, is an error.

This page is generated from the code: `python -m foveate.app.settings_page docs/settings.md`.
"""
_HEADING: Final = "| key | flag | default | values | meaning |\n|---|---|---|---|---|\n"
_NAMES: Final[dict[Any, str]] = {int: "integer", float: "number", bool: "`true`, `false`", str: "text", tuple: "list"}
_RULES: Final = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}


def settings_page() -> str:
    """The page as Markdown: one table for the settings without a group, and one for each group."""
    parts = [_INTRODUCTION]
    for group, found in groupby(leaves(), lambda leaf: leaf[0][:-1]):
        rows = "".join(_row(keys, info) for keys, info in found)
        parts.append(f"{_title(group)}\n<!-- settings -->\n{_HEADING}{rows}<!-- /settings -->\n")
    return "\n".join(parts)


def _title(group: Keys) -> str:
    if not group:
        return "## Without a group\n"
    model = Settings.model_fields[group[0]].annotation
    return f"## {group[0]}\n\n{' '.join((model.__doc__ or '').split())}\n"


def _row(keys: Keys, info: FieldInfo) -> str:
    short = f", `{SHORT[keys[0]]}`" if len(keys) == 1 and keys[0] in SHORT else ""
    meaning = text_of(*keys).replace("|", "\\|")
    return f"| `{'.'.join(keys)}` | `{_flag(keys, info)}`{short} | {_default(info)} | {_values(info)} | {meaning} |\n"


def _flag(keys: Keys, info: FieldInfo) -> str:
    """The flag that changes the default: of a switch that is on, the one that turns it off."""
    flag = spelling(keys)
    if info.default is not True:
        return flag
    group, dot, name = flag.removeprefix("--").rpartition(".")
    return f"--{group}{dot}no-{name}"


def _default(info: FieldInfo) -> str:
    value = list(info.default) if isinstance(info.default, tuple) else info.default
    return "none" if value is None else f"`{orjson.dumps(value).decode()}`"


def _values(info: FieldInfo) -> str:
    """The kinds of value that a setting takes, and their range."""
    if Seconds in get_args(info.annotation):
        return "seconds, or a time such as `1:02:03.5`"
    kinds = [kind for kind in _alternatives(info.annotation) if kind is not NoneType]
    return ", ".join([*map(_kind, kinds), *_bounds(info)])


def _alternatives(annotation: Any) -> Iterator[Any]:
    """The members of a union; what is not one is the only one."""
    if isinstance(annotation, type) or get_origin(annotation) in (Literal, tuple):
        yield annotation
    else:
        for member in get_args(annotation):
            yield from _alternatives(member)


def _kind(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(kind))
    return _NAMES[get_origin(kind) or kind]


def _bounds(info: FieldInfo) -> Iterator[str]:
    limits = {name: getattr(rule, name) for rule in info.metadata for name in _RULES if hasattr(rule, name)}
    if limits.keys() == {"ge", "le"}:
        yield f"{limits['ge']:,} to {limits['le']:,}"
    else:
        yield from (f"{sign} {limits[name]:,}" for name, sign in _RULES.items() if name in limits)


def main(arguments: list[str]) -> int:
    """Write the page to the file named. Returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m foveate.app.settings_page FILE.md", file=sys.stderr)
        return 2
    Path(arguments[0]).write_text(settings_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
