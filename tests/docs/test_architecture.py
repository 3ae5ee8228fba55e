"""The map of the code is true: paths, names, walks; and no text refers to a document that a reader does not have."""

from __future__ import annotations

import re

import pytest

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


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_passes_at_most_ten_files(title: str) -> None:
    ways = re.split(r"^\*\*", sections()[title], flags=re.MULTILINE)
    for way in ways:
        steps = "\n".join(re.findall(r"^\d+\. (?:.*\n)(?:   .*\n)*", way, re.MULTILINE))
        assert len({path for path in re.findall(r"`([\w-]+/[\w./-]+)`", steps) if path in PATHS}) <= 10


def test_every_folder_of_the_code_is_on_the_map() -> None:
    folders = {path.parent for room in ("pipeline", "cuda") for path in (ROOT / room).glob("*/*.py")}
    assert {str(folder.relative_to(ROOT)) for folder in folders} <= {path.rpartition("/")[0] for path in PATHS}


def test_no_text_mentions_a_design_that_cannot_be_read() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".c", ".cu", ".md")]
    found = [path.name for path in files if re.search(r"DESIGN\b|the design\b", path.read_text(encoding="utf-8"))]
    assert found == [__file__.rpartition("/")[2]]
