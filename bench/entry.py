"""Exit codes, one-line errors and argument checks of the benchmarks that run as ``python -m foveate.bench....``"""

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import tyro
from av.error import FFmpegError
from tyro.conf import arg

from foveate.bench.case import RedCheckError
from foveate.pipeline.errors import FoveateError, SettingsError
from foveate.pipeline.exits import Exit, leave
from foveate.pipeline.extras import install_command
from foveate.pipeline.flag_help import with_flags_of
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.sinks.destination import cannot_write

Out = Annotated[str | None, arg(metavar="FILE.json", help="The JSON record. Default: standard output.")]
"""The flag ``--out`` of a benchmark."""

_EXTRAS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("pycuda", "cuda", "PyNvVideoCodec"), "cuda"),
    **dict.fromkeys(("onnxruntime", "rapidocr", "PIL"), "ocr"),
    "scenedetect": "peers",
    "transformers": "vlm",
}
"""The extras that bring what is imported only where it is needed; all else has the name of its package."""


def run_module(command: Callable[..., None]) -> None:
    """Run ``python -m MODULE``, whose flags are the parameters of ``command``, and end the process."""
    leave(exit_code(command, sys.argv[1:]))


@contextmanager
def needed(importer: str) -> Iterator[None]:
    """Around imports of optional packages at the top of the module ``importer``, which is its ``__name__``.

    If that runs as a command and one is missing, the process ends with a line that says which. Else raises ImportError.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if importer != "__main__" or _is_ours(error):
            raise
        leave(_tell_missing(error))


def exit_code(command: Callable[..., None], arguments: Sequence[str]) -> int:
    """Run ``command`` with a command line. Returns the exit code as ``guarded``."""
    module = sys.modules["__main__"].__spec__
    prog = f"python -m {module.name.removesuffix('.__main__')}" if module else command.__name__

    def call(*positional: object, **named: object) -> None:
        command(*positional, **named)

    return guarded(lambda: tyro.cli(with_flags_of(command, call), prog=prog, args=list(arguments)))


def guarded(call: Callable[[], None]) -> int:
    """Call, and return the exit code, with one line for each error.

    1: an input's error, a red check or a missing package; 2: a wrong argument.
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
    except ModuleNotFoundError as error:
        if _is_ours(error):
            raise
        return _tell_missing(error)
    except OSError as error:
        if error.filename is not None:
            raise
        print(f"foveate: error: {cannot_write('standard output', error)}", file=sys.stderr)
        return Exit.FAILED
    return Exit.DONE


def _is_ours(error: ModuleNotFoundError) -> bool:
    return error.name is None or error.name.partition(".")[0] == "foveate"


def _tell_missing(error: ModuleNotFoundError) -> int:
    package = (error.name or "").partition(".")[0]
    command = install_command(_EXTRAS[package]) if package in _EXTRAS else f"pip install {package}"
    print(f"foveate: error: this needs the package {package}, which is not installed: {command}", file=sys.stderr)
    return Exit.FAILED


def check_folders(**outputs: str | None) -> None:
    """Raise SettingsError before measuring where the folder of an output does not exist."""
    for flag, name in outputs.items():
        if name is not None and not Path(name).parent.is_dir():
            raise SettingsError(f"--{flag} {name!r}: there is no folder {str(Path(name).parent)!r}")


def size_of(text: str) -> tuple[int, int]:
    """Width and height of ``--size``, such as 1920x1080. Raises SettingsError."""
    match = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text)
    if match is None:
        raise SettingsError(f"--size must be written as WIDTHxHEIGHT, such as 1920x1080, got {text!r}")
    return int(match[1]), int(match[2])


def check_least(least: int, **numbers: int) -> None:
    """Raise SettingsError for a number below ``least`` or above the largest frame count."""
    for flag, number in numbers.items():
        check_count(flag, number, least)
