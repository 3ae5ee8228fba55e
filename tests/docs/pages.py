"""The pages of the documentation, as text."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / "bench" / "results"
PAGES: Final = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "bench" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}


def page(name: str) -> str:
    """The page docs/``name``.md."""
    return PAGES[f"docs/{name}.md"]


def tables(text: str, name: str) -> list[list[str]]:
    """The cells of all tables between the markers ``name``, heading and ruler left out."""
    found = re.findall(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found
    return [row for block in found for row in rows(block)]


def rows(block: str) -> list[list[str]]:
    """The cells of the table in ``block``, heading and ruler left out."""
    lines = [line for line in block.split("\n") if line[:1] == "|"]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    assert len(cells) > 2
    assert {len(row) for row in cells[:1] + cells[2:]} == {len(cells[0])}
    return cells[2:]


def codes(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def blocks(language: str, text: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
