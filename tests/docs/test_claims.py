"""Marked figures of all pages are those of bench/results; the commands that measure them are there."""

import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from foveate.app.main import main
from foveate.bench.entry import exit_code
from foveate.bench.figures.page import figures
from tests.docs.pages import PAGES, RESULTS, page

MARK = re.compile(r"([^\s*]+)<!-- = (\S+) / (.+?) / (\S+) -->")


def marks() -> Iterator[tuple[str, str, str, str]]:
    """What stands in the pages, the record's name, the place in it, and the format."""
    for text in PAGES.values():
        for found in MARK.finditer(text):
            said, record, place, form = found.groups()
            yield said.lstrip("(*"), record, place, form


def number(record: dict[str, Any], place: str) -> float | None:
    """What stands at a place of a record; None where nothing does."""
    found: Any = record
    if " > " in place:
        name, place = place.split(" > ")
        (found,) = [case for case in record["cases"] if case["name"] == name] or [{}]
    for key in place.split("."):
        named = {item["name"]: item for item in found} if isinstance(found, list) else found
        found = named.get(key, {})
    return found if found != {} else None


@pytest.mark.parametrize(("said", "name", "place", "form"), list(marks()))
def test_a_figure(said: str, name: str, place: str, form: str) -> None:
    record = json.loads((RESULTS / f"{name}.json").read_text())
    values = [number(record, part) for part in place.split(" : ")]
    assert None not in values, f"{name}.json has nothing at {place!r}"
    first, *rest = (float(value) for value in values if value is not None)
    assert said == format(first / rest[0] if rest else first, form)


@pytest.mark.parametrize("name", ["claims", "experiments"])
def test_every_number_of_the_tables_is_marked(name: str) -> None:
    rows = [line for line in page(name).splitlines() if line.startswith("|") and "<!--" in line]
    assert len(rows) >= 15
    for row in rows:
        for cell in row.strip("|").split(" | ")[1:]:
            words = re.sub(r"<!--.*?-->", "", MARK.sub("", cell)).replace("NVIDIA H200", "")
            assert not re.search(r"\d", words), cell


def test_arithmetic() -> None:
    patches = -(-1920 // 16) * -(-1080 // 16)
    assert f"{patches:,}" == "8,160"
    assert f"{patches / 273:.1f} times fewer" in page("claims")
    assert f"(8,160 / 273)² is {(patches / 273) ** 2:.0f}" in page("claims")
    assert f"{130_000 / 273:.0f}: a clip" in page("claims")
    assert f"the pairs are {(4096 / 288) ** 2:.0f} times fewer" in page("claims")


@pytest.mark.parametrize("name", PAGES)
def test_the_figures_command_leaves_a_page_as_it_is(name: str, tmp_path: Path) -> None:
    """A page is current, and python -m foveate.bench.figures works for it."""
    copy = tmp_path / "page.md"
    copy.write_text(PAGES[name], encoding="utf-8")
    assert exit_code(figures, [str(copy)]) == 0
    assert copy.read_text(encoding="utf-8") == PAGES[name]


def test_the_commands_are_there(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(" ".join(PAGES.values()).split())
    modules = set(re.findall(r"`python -m (foveate\.[\w.]+)", text))
    modules |= {f"foveate.bench.{name}" for name in re.findall(r"\| `((?:cases|gpu)\.\w+)", page("claims"))}
    assert len(modules) >= 30
    for module in modules:
        assert importlib.util.find_spec(module), module
    assert main(["bench", "--help"]) == 0
    told = capsys.readouterr().out
    for command in re.findall(r"`foveate bench ([^`]*)`", text):
        for flag in re.findall(r"--[a-z-]+", command):
            assert flag in told, flag


def test_the_defaults() -> None:
    name = re.search(r"<!-- ablation (\S+) -->", page("defaults"))
    assert name is not None
    cases = json.loads((RESULTS / f"{name[1]}.json").read_text())["cases"]
    rows = page("defaults").split(name[0])[1].split("<!-- /ablation -->")[0].strip().splitlines()[2:]
    groups: dict[str, list[str]] = {}
    for name, value, found, cost, marks in ([cell.strip() for cell in row[1:-1].split("|")] for row in rows):
        if name:
            held = [case for case in cases if case["group"] == name]
            groups[name] = []
            default = next((case["value"] for case in held if case["default"]), None)
            base = default or value
        groups[list(groups)[-1]].append(value)
        means = {
            key: [fmean(case[key] for case in held if case["value"] == each) for each in (value, base)]
            for key in ("psnr_luma", "cpu_ms", "correlation")
            if all(key in case for case in held)
        }
        assert ("default" in marks) == (value == default)
        assert cost == (f"{means['cpu_ms'][0] / means['cpu_ms'][1]:.2f}" if "cpu_ms" in means else "")
        if "psnr_luma" in means:
            assert found == f"{means['psnr_luma'][0] - means['psnr_luma'][1]:+.2f}"
        else:
            assert found == (f"{means['correlation'][0]:.3f}" if "correlation" in means else "")
    assert list(groups) == list(dict.fromkeys(case["group"] for case in cases))
    for group, values in groups.items():
        assert set(values) == {case["value"] for case in cases if case["group"] == group}
