"""The measures that are modules of their own: what they refuse, in one line, before anything is measured."""

import importlib
import runpy
import subprocess
import sys
import wave
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from av.error import InvalidDataError

from foveate.bench.clips.encoding import looped
from foveate.bench.entry import exit_code, guarded
from foveate.pipeline.errors import SourceError

MEASURES = {
    "cases.carrying.carrying": (),
    "gpu.fetches.fetches": (),
    "gpu.files.gpu_files": ("clip.mp4",),
    "gpu.frame.gpu_frame": ("clip.mp4",),
    "gpu.memory.gpu_memory": ("clip.mp4",),
    "gpu.relevance.gpu_relevance": (),
    "gpu.against_torch.gpu_torch": ("clip.mp4",),
    "gpu.tower.gpu_tower": ("clip.mp4",),
    "cases.memory.memory": (),
    "cases.plain.plain": ("clip.mp4",),
    "cases.quality.quality": (),
    "cases.detection.detection": ("--model", "person.onnx"),
    "cases.truth.truth": (),
    "cases.words.words": (),
    "cases.vlm.vlm": ("--model", "model", "--questions", "questions.jsonl"),
}
Say = Callable[[str, Sequence[str]], tuple[int, str]]


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Say:
    """Runs a measure, and tells its exit code and all that it said on standard error."""

    def run(measure: str, arguments: Sequence[str]) -> tuple[int, str]:
        module, _, command = f"foveate.bench.{measure}".rpartition(".")
        code = exit_code(getattr(importlib.import_module(module), command), arguments)
        return code, capsys.readouterr().err

    return run


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    """A file with audio only."""
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 800, "NONE", ""))
        file.writeframes(bytes(1600))
    return path


@pytest.mark.parametrize("measure", MEASURES)
def test_a_record_that_could_not_be_written_is_refused_at_once(measure: str, say: Say, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    told = say(measure, [*MEASURES[measure], "--out", f"{gone}/record.json"])
    assert told == (2, f"foveate: error: --out '{gone}/record.json': there is no folder '{gone}'\n")


def test_so_is_a_table(say: Say) -> None:
    code, said = say("cases.quality.quality", ["--table", "gone/table.md"])
    assert (code, said) == (2, "foveate: error: --table 'gone/table.md': there is no folder 'gone'\n")


@pytest.mark.parametrize(
    ("measure", "arguments", "rule"),
    [
        ("cases.quality.quality", ["--budget", "0"], "--budget must be at least 1, got 0"),
        ("cases.quality.quality", ["--frames", "0"], "--frames must be at least 1, got 0"),
        ("cases.carrying.carrying", ["--frames", "1"], "--frames must be at least 2, got 1"),
        ("cases.memory.memory", ["--short", "5"], "--short must be a multiple of 10, got 5"),
        ("cases.memory.memory", ["--long", "0"], "--long must be a multiple of 10, got 0"),
        (
            "gpu.loss.gpu_loss",
            ["clip.mp4", "--size", "big"],
            "--size must be written as WIDTHxHEIGHT, such as 1920x1080, got 'big'",
        ),
    ],
)
def test_numbers_that_cannot_be(measure: str, arguments: list[str], rule: str, say: Say) -> None:
    assert say(measure, arguments) == (2, f"foveate: error: {rule}\n")


def test_files_that_are_no_video(say: Say, sound: Path, tmp_path: Path) -> None:
    words = tmp_path / "words.mp4"
    words.write_text("no video")
    for path, reason in (
        (tmp_path / "gone.mp4", "No such file or directory"),
        (words, "Invalid data found when processing input"),
        (sound, "no video stream"),
    ):
        code, said = say("cases.quality.quality", [str(path)])
        assert (code, said.splitlines()[1:]) == (1, [f"foveate: error: {path}: {reason}"])


def test_an_error_without_a_file_names_none(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise InvalidDataError(1094995529, "Invalid data found when processing input")

    assert guarded(fail) == 1
    assert capsys.readouterr().err == "foveate: error: Invalid data found when processing input\n"


@pytest.mark.parametrize(
    ("output", "code", "said"),
    [("| true", 0, ""), ("> /dev/full", 1, "cannot write standard output: the disk is full")],
)
def test_standard_output_that_takes_nothing(output: str, code: int, said: str) -> None:
    command = f"'{sys.executable}' -m foveate.bench.figures --help {output}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == bool(said)


def commands() -> list[str]:
    """All modules of the benchmarks that run as commands."""
    bench = Path(__file__).parents[2] / "bench"
    return [
        "foveate.bench." + ".".join(path.relative_to(bench).with_suffix("").parts)
        for path in sorted(bench.rglob("*.py"))
        if "\n    run_module(" in path.read_text()
    ]


MISSING = ("torch", "transformers", "rapidocr", "onnxruntime", "PIL", "pycuda", "PyNvVideoCodec", "moderngl", "ray")


@pytest.mark.parametrize("module", commands())
def test_without_optional_packages_there_is_help_or_one_line(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in MISSING:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    said = capsys.readouterr()
    if end.value.code == 0:
        assert "usage: python -m foveate.bench." in said.out
        return
    assert end.value.code == 1
    assert said.err == "foveate: error: this needs the package torch, which is not installed: pip install torch\n"


@pytest.mark.parametrize(
    ("package", "told"),
    [("torch", "pip install torch"), ("PyNvVideoCodec", "[cuda]'"), ("PIL", "[ocr]'"), ("transformers", "[vlm]'")],
)
def test_a_package_that_is_missing_where_it_is_first_needed(
    package: str, told: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert guarded(lambda: importlib.import_module(f"{package}.part")) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"foveate: error: this needs the package {package}, which is not installed: pip install ")
    assert told in line


def test_a_module_of_our_own_that_is_missing_is_a_fault() -> None:
    with pytest.raises(ModuleNotFoundError):
        guarded(lambda: importlib.import_module("foveate.bench.gone"))


def test_sound_cannot_be_played_again_and_again(sound: Path, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no video stream"):
        looped(sound, tmp_path / "long.mp4", 2)
