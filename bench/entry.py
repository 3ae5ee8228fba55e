"""Exit codes, one-line errors and argument checks of the benchmarks that run as ``python -m foveate.bench....``"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from av.error import FFmpegError

from foveate.bench.case import RedCheckError
from foveate.pipeline.errors import FoveateError, SettingsError
from foveate.pipeline.exits import Exit
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.sinks.destination import cannot_write


def guarded(call: Callable[[], None]) -> int:
    """Call, and return the exit code: 1 for an input's error or a red check, 2 for a wrong argument, each one line.

    The process then ends by ``pipeline.exits.leave``.
    """
    try:
        call()
    except BrokenPipeError:  # as with `| head`
        return Exit.DONE
    except SystemExit as end:  # after the help text, or for a wrong flag
        return end.code if isinstance(end.code, int) else Exit.DONE
    except FFmpegError as error:
        place = f"{error.filename.removeprefix('file:')}: " if error.filename else ""
        print(f"foveate: error: {place}{error.strerror}", file=sys.stderr)
        return Exit.FAILED
    except (FoveateError, RedCheckError) as error:
        print(f"foveate: error: {error}", file=sys.stderr)
        return Exit.WRONG_ARGUMENTS if isinstance(error, SettingsError) else Exit.FAILED
    except OSError as error:
        if error.filename is not None:
            raise
        print(f"foveate: error: {cannot_write('standard output', error)}", file=sys.stderr)
        return Exit.FAILED
    return Exit.DONE


def check_folders(**outputs: str | None) -> None:
    """Raise SettingsError before measuring where the folder of an output does not exist."""
    for flag, name in outputs.items():
        if name is not None and not Path(name).parent.is_dir():
            raise SettingsError(f"--{flag} {name!r}: there is no folder {str(Path(name).parent)!r}")


def check_least(least: int, **numbers: int) -> None:
    """Raise SettingsError for a number below ``least`` or above the largest frame count."""
    for flag, number in numbers.items():
        check_count(flag, number, least)
