"""The map of the code is true: paths, names, walks; and no text refers to a document that a reader does not have."""

import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from foveate.pipeline import open_sink, open_stream
from tests.docs.pages import ROOT, page

MAP = page("architecture")
ROOMS = ("app", "bench", "configs", "cuda", "docs", "pipeline", "tests")
PATHS = sorted({path for path in re.findall(r"`([\w.-]+(?:/[\w.-]*)+)`", MAP) if path.split("/")[0] in ROOMS})
NAMES = [
    (path, name)
    for path, names in re.findall(r"`([\w/.-]+)`\s\(((?:`\w+`(?:, )?)+)\)", MAP)
    for name in names.split("`")[1::2]
]
WALKS = ("A frame", "A query", "A selection")


def sections() -> dict[str, str]:
    """The text under each heading of the second order."""
    _, *parts = re.split(r"^## ", MAP, flags=re.MULTILINE)
    return dict(part.split("\n", 1) for part in parts)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_there(path: str) -> None:
    assert (ROOT / path).is_dir() if path.endswith("/") else (ROOT / path).is_file()


@pytest.mark.parametrize(("path", "name"), NAMES)
def test_a_name_is_defined_in_its_file(path: str, name: str) -> None:
    assert re.search(rf"^\s*(class|def) {name}\b|^{name}\b", (ROOT / path).read_text(), re.MULTILINE)


def test_enough_was_found() -> None:
    assert len(PATHS) > 60
    assert len(NAMES) > 20


def test_a_walk_passes_at_most_ten_files() -> None:
    for way in ways():
        assert len({path for path in re.findall(r"`([\w-]+/[\w./-]+)`", way) if path in PATHS}) <= 10


def ways() -> Iterator[str]:
    """The numbered steps of each way through the code."""
    for title in WALKS:
        for way in re.split(r"^\*\*", sections()[title], flags=re.MULTILINE):
            yield "\n".join(re.findall(r"^\d+\. (?:.*\n)(?:   .*\n)*", way, re.MULTILINE))


def test_a_stream_passes_the_files_of_the_walks(samples: Path, tmp_path: Path) -> None:
    """All but those on the card, of an image-text model, and of a model that reads the tokens."""
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            passed.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        asked = {"query": ("red",), "allocation": {"memory": "stream"}, "patches": True, "source": {"frames": 3}}
        sinks = [open_sink(str(tmp_path / "tokens.jsonl"))]
        with open_stream(str(samples / "pedestrians.mp4"), sinks=sinks, **asked) as stream:
            stream.drain()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # as Python's documentation has it
    walked = {path for way in ways() for path in re.findall(r"`(pipeline/[\w./-]+)`", way)}
    assert len(walked) > 20
    missed = {path for path in walked if not any(each.endswith(f"/{path}") for each in passed)}
    assert missed == {"pipeline/encoders/query.py", "pipeline/vlm/reader.py"}


def test_every_folder_of_the_code_is_on_the_map() -> None:
    folders = {path.parent for room in ("pipeline", "cuda") for path in (ROOT / room).glob("*/*.py")}
    assert {str(folder.relative_to(ROOT)) for folder in folders} <= {path.rpartition("/")[0] for path in PATHS}


def test_no_text_mentions_a_design_that_cannot_be_read() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".c", ".cu", ".md")]
    found = [path.name for path in files if re.search(r"DESIGN\b|the design\b", path.read_text(encoding="utf-8"))]
    assert found == [__file__.rpartition("/")[2]]
