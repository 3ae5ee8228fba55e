"""Completion as bash does it, of every command; and the version, asked of any of them."""

import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from foveate.app.main import main

COMMANDS = ("run", "live", "corpus", "ask", "bench", "fit-scorer", "doctor", "fit-pca", "completion")


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from foveate.app.completion import script

    file = tmp_path_factory.mktemp("completion") / "foveate.bash"
    file.write_text(script("bash"))
    return file


def completed(file: Path, *words: str) -> list[str]:
    """What bash offers for the last of ``words``, by the function that is registered for ``foveate``."""
    steps = (
        f"source {file}",
        'function="$(complete -p foveate | sed "s/.*-F \\([^ ]*\\).*/\\1/")"',
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()',
        '"$function"; printf "%s\\n" "${COMPREPLY[@]}"',
    )
    done = subprocess.run(
        ["bash", "-c", "\n".join(steps), "bash", "foveate", *words], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["r"], ["run"]),
        (["run", "--bud"], ["--budget", "--budget-average"]),
        (["run", "--engine", ""], ["auto", "cpu", "cuda"]),
        (["run", "clip.mp4", "--allocation.str"], ["--allocation.strategy"]),
        (["live", "--rot"], ["--rotate"]),
        (["fit-pca", "--dense", ""], ["native", "windows"]),
        (["fit-scorer", "--rid"], ["--ridge"]),
        (["bench", "--repe"], ["--repeats"]),
        (["doctor", "--j"], ["--json"]),
    ],
)
def test_bash_completes_commands_flags_and_values(bash_script: Path, words: list[str], offered: list[str]) -> None:
    assert completed(bash_script, *words) == offered


def test_bash_offers_every_command_and_falls_back_to_files(bash_script: Path) -> None:
    assert set(COMMANDS) <= set(completed(bash_script, ""))
    assert completed(bash_script, "run", "sam") == []
    registered = subprocess.run(
        ["bash", "-c", f"source {bash_script}; complete -p foveate"], capture_output=True, text=True, check=True
    )
    assert "-o default" in registered.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr()
    assert all(name in said.out for name in (*COMMANDS, "--allocation.strategy" if shell != "fish" else "allocation"))
    assert said.err == ""


@pytest.mark.parametrize("words", [["completion", "tcsh"], ["completion"], ["run", "--tyro-print-completion", "zsh"]])
def test_what_there_is_no_script_for_is_told(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "foveate completion --help" in said


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("before", [[], ["x"]])
def test_any_command_tells_the_version(command: str, before: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, *before, "--version"]) == 0
    assert capsys.readouterr().out == f"foveate {metadata.version('foveate')}\n"


def test_behind_two_dashes_it_is_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--", "--version"]) == 1
    assert "--version" in capsys.readouterr().err
