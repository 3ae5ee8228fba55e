"""What the measures that are modules of their own do with errors, and what they refuse before they measure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from av.error import FFmpegError

from foveate.bench.case import RedCheckError
from foveate.pipeline.errors import FoveateError, SettingsError
from foveate.pipeline.settings_errors import check_count


def guarded(call: Callable[[], None]) -> int:
    """Call, and return the exit code: 1 for an input's error or a red check, 2 for a wrong argument, each one line."""
    try:
        call()
    except FFmpegError as error:
        place = f"{error.filename.removeprefix('file:')}: " if error.filename else ""
        print(f"foveate: error: {place}{error.strerror}", file=sys.stderr)
        return 1
    except (FoveateError, RedCheckError) as error:
        print(f"foveate: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, SettingsError) else 1
    return 0


def check_folders(**outputs: str | None) -> None:
    """Raise SettingsError now for an output whose folder is not there: it would fail when all is measured."""
    for flag, name in outputs.items():
        if name is not None and not Path(name).parent.is_dir():
            raise SettingsError(f"--{flag} {name!r}: there is no folder {str(Path(name).parent)!r}")


def check_least(least: int, **numbers: int) -> None:
    """Raise SettingsError for a number below ``least``, or beyond any that can be counted to."""
    for flag, number in numbers.items():
        check_count(flag, number, least)
