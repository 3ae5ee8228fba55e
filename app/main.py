"""The command line: which command, which exit code, and one line for every error.

Only what ``foveate --version`` needs is imported here; each command imports the rest.
"""

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import takewhile
from pathlib import Path

from foveate.app.console import Console
from foveate.pipeline.exits import Exit, leave

_HELP = """\
usage: foveate COMMAND ...

Chooses the visual tokens of a video for a vision-language model: a fixed budget per frame, spent
where there is detail, motion or what a query asks for.

  run SOURCE...               choose the tokens of every frame of a video, or of several
  live SOURCE...              the same for cameras and network streams, with reconnection and a web page
  corpus SOURCE... --out DIR  the same for many videos, by many processes or machines
  ask SOURCE QUESTION         ask a vision-language model about a video, at a fraction of its tokens

  doctor                      what this machine supports, what is missing, and how to get it
  bench [FILE...]             speed against bare decoding; bench --suite: quality, speed, ablation
  fit-pca SOURCE...           for queries in any words: the PCA that an image-text model needs, once
  fit-scorer FILE.npz...      for a scorer of your own: its weights, from a model's attention
  completion SHELL            the completion script for bash, zsh or fish

For example:
  foveate run clip.mp4 --query moving --out tokens.jsonl --overlay seen.mp4

foveate COMMAND --help: all options of a command. foveate --version: the version.

Exit codes: 0 done, also when the reader of standard output went away; 1 the source could not
be read or the run failed; 2 bad arguments or configuration; 3 finished, but the source was
damaged; 130 interrupted, 143 terminated, 129 the terminal was closed."""

_WITHOUT_PROCESSES = re.compile(r"(^| )(-h|--help|--ray|--workers[ =]0+)(?=[ =]|$)")  # of ``foveate corpus``


def entry() -> None:
    """What the ``foveate`` command calls: run, and end the process."""
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads what every installed package declares
    leave(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run the command line ``arguments``, without the program's name. Returns the exit code."""
    console = Console()
    for argument in arguments:
        console.learn(argument)
    try:
        return _dispatch(arguments, console)
    except BrokenPipeError:  # as in `foveate run clip.mp4 | head -1`
        return Exit.DONE
    except KeyboardInterrupt:
        console.say("interrupted")
        return Exit.INTERRUPTED
    except SystemExit as end:  # after help was printed
        return end.code if isinstance(end.code, int) else Exit.DONE
    except Exception as error:  # noqa: BLE001 - the outermost place: everything becomes one line and a code
        return _report(error, console, debug=_wants_traceback(arguments))


def _dispatch(arguments: Sequence[str], console: Console) -> int:
    if not arguments:
        console.say(_HELP)
        return Exit.WRONG_ARGUMENTS
    command, *rest = arguments
    if command in ("-h", "--help", "--version"):
        print(_version() if command == "--version" else _HELP, flush=True)
        return Exit.DONE
    if command not in COMMANDS:
        raise _no_command(command)
    if _asks_for_version(rest):
        print(_version(), flush=True)
        return Exit.DONE
    with console.warnings():
        return COMMANDS[command](rest, console)


def _asks_for_version(arguments: Sequence[str]) -> bool:
    """Whether --version is among the flags; what follows ``--`` is not a flag."""
    return "--version" in takewhile(lambda argument: argument != "--", arguments)


def _version() -> str:
    from importlib import metadata

    return f"foveate {metadata.version('foveate')}"


def _no_command(word: str) -> Exception:
    from foveate.pipeline.errors import SettingsError

    hint = f"did you mean foveate run {word}?" if Path(word).exists() else "see foveate --help"
    return SettingsError(f"unknown command {word!r}; commands are {', '.join(COMMANDS)}; {hint}")


def _run(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.addresses import hide_in_title
    from foveate.app.arguments import run_arguments

    parsed = run_arguments(arguments)
    hide_in_title(arguments)
    _leave_processors_to_the_decoder()
    from foveate.app.run import run
    from foveate.pipeline.stream import open_stream

    return run(parsed, partial(open_stream, expect="file"), console)


def _live(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.live.arguments import live_arguments

    parsed = live_arguments(arguments, console)
    _leave_processors_to_the_decoder()
    from foveate.app.live.command import live

    return live(parsed, console)


def _corpus(arguments: Sequence[str], console: Console) -> int:
    from foveate.pipeline.corpus.fork_server import ForkServer

    # It imports what workers need, while this process imports what the command needs.
    with ForkServer() if _will_fork(arguments) else nullcontext() as server:
        from foveate.app.corpus.arguments import corpus_arguments

        parsed = corpus_arguments(arguments, console)
        _leave_processors_to_the_decoder()
        from foveate.app.corpus.command import corpus

        return corpus(parsed, console, server)


def _will_fork(arguments: Sequence[str]) -> bool:
    """Whether the work seems to be for processes of this machine, as far as can be told without parsing."""
    flags = " ".join(arguments)
    return re.search(r"(^| )--out\b", flags) is not None and _WITHOUT_PROCESSES.search(flags) is None


def _ask(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.addresses import hide_in_title
    from foveate.app.arguments import parse_call
    from foveate.app.ask.arguments import ask

    parsed = parse_call(ask, arguments, "ask")()
    console.learn(parsed.address)
    hide_in_title(arguments)
    _leave_processors_to_the_decoder()
    from foveate.app.ask.command import answer
    from foveate.pipeline.stream import open_stream

    return answer(parsed, open_stream, console)


def _bench(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.arguments import parse_call
    from foveate.app.benchmarks import benchmark

    _leave_processors_to_the_decoder()
    target, name, rest = benchmark(arguments)
    return int(parse_call(target, rest, name)())


def _fit_scorer(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.arguments import parse_call
    from foveate.app.fit_scorer import fit

    return int(parse_call(fit, arguments, "fit-scorer")())


def _doctor(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.arguments import parse_call
    from foveate.app.doctor import doctor

    return int(parse_call(doctor, arguments, "doctor")())


def _fit_pca(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.arguments import parse_call
    from foveate.app.fit_pca import fit_pca

    return int(parse_call(fit_pca, arguments, "fit-pca")())


def _completion(arguments: Sequence[str], console: Console) -> int:
    from foveate.app.arguments import parse_call
    from foveate.app.completion import completion

    return int(parse_call(completion, arguments, "completion")())


def _leave_processors_to_the_decoder() -> None:
    """Limit OpenCV and OpenBLAS to one thread: on small arrays more gain nothing, and compete with the decoder's."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported, which OpenCV does
    import cv2

    cv2.setNumThreads(1)


COMMANDS: dict[str, Callable[[Sequence[str], Console], int]] = {
    "run": _run,
    "live": _live,
    "corpus": _corpus,
    "ask": _ask,
    "bench": _bench,
    "fit-scorer": _fit_scorer,
    "doctor": _doctor,
    "fit-pca": _fit_pca,
    "completion": _completion,
}


def _report(error: Exception, console: Console, *, debug: bool) -> int:
    """Print one line that says what went wrong, after the traceback if that is wanted. Returns the exit code."""
    from foveate.pipeline.errors import FoveateError, SettingsError
    from foveate.pipeline.sinks.destination import cannot_write

    if debug:
        console.say(traceback.format_exc().rstrip())
    if isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None:  # a print's
        error = cannot_write("standard output", error)
    notes = getattr(error, "__notes__", ())
    place = f" ({'; '.join(notes)})" if notes else ""
    if isinstance(error, FoveateError):
        console.error(f"{error}{place}")
        return Exit.WRONG_ARGUMENTS if isinstance(error, SettingsError) else Exit.FAILED
    hint = "" if debug else "; this is a bug in Foveate: run again with --debug, and report the traceback"
    console.error(f"{type(error).__name__}: {error}{place}{hint}")
    return Exit.FAILED


def _wants_traceback(arguments: Sequence[str]) -> bool:
    return "--debug" in arguments or os.environ.get("FOVEATE_DEBUG", "0") not in ("", "0")
