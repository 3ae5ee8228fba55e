"""The outermost place: commands, exit codes and one line for every error, in-process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate.app import main as app
from foveate.pipeline.errors import EngineError, FoveateError, SettingsError, SinkError, SourceError


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes ``foveate run`` raise the given error."""

    def plan(error: BaseException) -> None:
        def run(*_: Any) -> int:
            raise error

        monkeypatch.setitem(app.COMMANDS, "run", run)

    return plan


@pytest.mark.parametrize(("kind", "code"), [(SourceError, 1), (SinkError, 1), (EngineError, 1), (SettingsError, 2)])
def test_an_error_is_one_line_and_a_code(
    kind: type[FoveateError], code: int, raising: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    error = kind("what, and why")
    error.add_note("in stage decode")
    raising(error)
    assert app.main(["run"]) == code
    assert capsys.readouterr() == ("", "foveate: error: what, and why (in stage decode)\n")


def test_a_fault_of_ours_is_one_line_and_how_to_get_more(
    raising: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FOVEATE_DEBUG", raising=False)
    raising(ZeroDivisionError("oh"))
    assert app.main(["run"]) == 1
    told = capsys.readouterr().err
    assert told.startswith("foveate: error: ZeroDivisionError: oh; ")
    assert "--debug" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_traceback_is_there_for_the_asking_and_clean(
    by_flag: bool, raising: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = "rtsp://user:secret@camera"
    raising(SourceError(f"cannot open {address}"))
    monkeypatch.setenv("FOVEATE_DEBUG", "0" if by_flag else "1")
    assert app.main(["run", address, *(["--debug"] if by_flag else [])]) == 1
    told = capsys.readouterr().err
    assert "Traceback" in told
    assert told.splitlines()[-1] == "foveate: error: cannot open rtsp://***@camera"
    assert "secret" not in told


def test_a_reader_that_went_away_is_no_error(raising: Any, capsys: pytest.CaptureFixture[str]) -> None:
    raising(BrokenPipeError())
    assert app.main(["run"]) == 0
    assert capsys.readouterr() == ("", "")


def test_an_early_interruption(raising: Any, capsys: pytest.CaptureFixture[str]) -> None:
    raising(KeyboardInterrupt())
    assert app.main(["run"]) == 130
    assert capsys.readouterr() == ("", "interrupted\n")


def test_help_and_version_are_data(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    out, err = capsys.readouterr()
    assert all(command in out for command in app.COMMANDS)
    assert err == ""
    assert app.main(["--version"]) == 0
    assert capsys.readouterr().out == "foveate 0.1.0\n"


def test_no_command_and_a_wrong_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage:")
    assert app.main(["rnu"]) == 2
    assert "see foveate --help" in capsys.readouterr().err
    clip = tmp_path / "clip.mp4"
    clip.touch()
    assert app.main([str(clip)]) == 2
    assert f"did you mean foveate run {clip}?" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "live", "corpus", "ask", "bench", "doctor", "fit-pca", "fit-scorer"])
def test_the_help_shows_defaults_in_one_style_and_none_that_is_no_value(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert app.main([command, "--help"]) == 0
    told = capsys.readouterr().out
    assert "(default:" not in told
    assert "None" not in told


def test_every_command_is_listed_with_its_text_in_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert app.main(["--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for command in app.COMMANDS:
        (line,) = [line for line in lines if line.startswith(f"  {command} ")]
        assert line[30] != " "
        assert line[28:30] == "  "
