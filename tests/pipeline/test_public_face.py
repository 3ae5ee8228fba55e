"""What foveate.pipeline exports is there, documented, and its examples run."""

import ast
import doctest
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foveate.pipeline as public
from foveate.pipeline.settings import AllocationSettings

NAMES = {name: getattr(public, name) for name in public.__all__}
ERRORS = {name for name in NAMES if name.endswith("Error")} - {"FoveateError"}
FINDER = doctest.DocTestFinder(recurse=False)


def test_the_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(public.__file__).read_text(encoding="utf-8"))
    seen = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {alias.name for branch in seen for node in branch.body for alias in node.names}  # type: ignore[attr-defined]
    assert imported == set(public.__all__)
    assert sorted(public.__all__) == public.__all__ == dir(public)


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'open_video'"):
        _ = public.open_video


@pytest.mark.parametrize("name", NAMES)
def test_it_is_documented(name: str) -> None:
    text = inspect.getdoc(NAMES[name]) or ""
    assert text
    assert not text.startswith(f"{name}(")  # what dataclass and NamedTuple make up
    if name not in ERRORS | {"FrameView", "Header"}:
        assert ">>> " in text


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ERRORS])
def test_its_example_runs(name: str, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clip.mp4").symlink_to(samples / "pedestrians.mp4")
    monkeypatch.chdir(tmp_path)
    globs: dict[str, Any] = {**NAMES, "AllocationSettings": AllocationSettings}
    runner = doctest.DocTestRunner(verbose=False)
    for found in FINDER.find(NAMES[name], name, globs=globs):
        runner.run(found)
    assert runner.summarize(verbose=False).failed == 0


@pytest.mark.parametrize("name", ["Settings", "FoveateError", "Selection"])
def test_a_name_brings_no_decoder(name: str) -> None:
    code = f"import sys; from foveate.pipeline import {name}; sys.exit('av' in sys.modules or 'cv2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def test_python_m_foveate(tmp_path: Path) -> None:
    for words, code in ((["--version"], 0), ([], 2)):
        done = subprocess.run(
            [sys.executable, "-m", "foveate", *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == code
        assert (done.stdout + done.stderr).startswith("foveate 0.1.0" if words else "usage: foveate COMMAND")
