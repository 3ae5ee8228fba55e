"""``foveate completion``: scripts for shells that complete commands and flags."""

import contextlib
import io
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, get_args

from tyro.conf import Positional, arg
from tyro.extras import subcommand_cli_from_dict

from foveate.app.ask.arguments import ask
from foveate.app.benchmarks import benchmark
from foveate.app.doctor import doctor
from foveate.app.fit_pca import fit_pca
from foveate.app.fit_scorer import fit
from foveate.app.flags import corpus_flags, live_flags, run_flags
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit
from foveate.pipeline.settings import Settings

_BASH_FILES: Final = """
# Where there is nothing to complete, tyro's function gives an empty word, which keeps bash from completing files.
_foveate() { _tyro_foveate "$@"; [ -n "${COMPREPLY[*]}" ] || COMPREPLY=(); }
complete -o default -F _foveate foveate
"""
Shell = Literal["bash", "zsh", "fish"]


def completion(shell: Annotated[Positional[Shell], arg(metavar="bash|zsh|fish", help="Which shell.")]) -> int:
    """Print the script by which a shell completes the commands and flags of foveate.
    $ source <(foveate completion bash)
    $ foveate completion fish > ~/.config/fish/completions/foveate.fish
    """
    print(script(shell), end="", flush=True)
    return Exit.DONE


def script(shell: str) -> str:
    """The script for all commands. Raises SettingsError for another shell."""
    if shell not in get_args(Shell):
        raise SettingsError(f"completion is for {', '.join(get_args(Shell))}, got {shell!r}")
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.suppress(SystemExit):
        subcommand_cli_from_dict(_commands(), prog="foveate", args=["--tyro-print-completion", shell])
    return said.getvalue() + (_BASH_FILES if shell == "bash" else "")


def _commands() -> dict[str, Callable[..., Any]]:
    """The functions that tyro reads the flags of each command from."""
    return {
        "run": run_flags(Settings()),
        "live": live_flags(Settings()),
        "corpus": corpus_flags(Settings()),
        "ask": ask,
        "bench": benchmark([])[0],
        "fit-scorer": fit,
        "doctor": doctor,
        "fit-pca": fit_pca,
        "completion": completion,
    }
