"""The report of records: one page without scripts that asks for nothing, with charts of what was measured."""

import ast
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from foveate.bench import report
from foveate.bench.report.charts import Axis, Bar, Point, bars, lines, stacks
from foveate.bench.report.page import page


class Outline(HTMLParser):
    """Checks that elements are closed in order; collects their names, and the attributes that could fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.links: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.links |= {value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")}
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def outline(text: str) -> Outline:
    """The page's outline; fails where elements are not nested."""
    found = Outline()
    found.feed(text)
    assert found.open == []
    return found


def ablation() -> dict[str, Any]:
    """A record of the ablation, made up; with a name that is markup."""
    cases = [
        {"name": f"g {value}", "group": "<g>", "value": value, "default": value == "on", "clip": "one"}
        | {"memory": "frame", "psnr_luma": psnr, "cpu_ms": 2.0, "samples": {"cpu_ms": [1.0, 3.0]}}
        for value, psnr in (("on", 30.0), ("off", 31.5))
    ]
    curve = [
        {"name": f"budget {at}", "curve": "budget", "memory": "frame", "at": at, "cpu_ms": 1.0, "samples": {}}
        for at in (32, 64)
    ]
    quality = {"name": "q", "clip": "one", "method": "EVS", "psnr_luma": 30.0, "psnr_luma_least": 20.0}
    return {
        "command": "bench",
        "suite": "ablation",
        "commit": None,
        "machine": {"processor": "a <processor>", "cores": 2},
        "complete": False,
        "cases": [*cases, *curve, {**quality, "samples": {"psnr_luma": [20.0, 40.0]}}],
        "red": [{"name": "bad", "reason": "so & so"}],
    }


def test_a_page_needs_nothing_else(record: dict[str, Any]) -> None:
    text = page([{**record, "command": "bench"}, ablation()])
    found = outline(text)
    assert found.links == {"#r0", "#r1"}
    assert not found.names & {"script", "link", "img", "iframe", "object"}
    assert "@import" not in text
    assert "url(" not in text
    assert {"svg", "table", "details"} <= found.names
    for told in ("&lt;g&gt;", "a &lt;processor&gt;", "so &amp; so", "Unfinished", "favour off over the default, on"):
        assert told in text


def test_the_command(record: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results, out = tmp_path / "results.json", tmp_path / "page.html"
    results.write_text(json.dumps({**record, "command": "bench"}))
    assert main(["bench", "report", str(results), "--out", str(out)]) == 0
    assert out.read_text().startswith("<!doctype html>")
    for arguments, code, part in (
        (["report", "--out", str(out)], 2, "RECORD.json"),
        (["report", str(results)], 2, "--out is missing"),
        (["report", str(results), "--out", "gone/page.html"], 2, "there is no folder 'gone'"),
        (["report", "gone.json", "--out", str(out)], 1, "cannot read gone.json"),
    ):
        capsys.readouterr()
        assert main(["bench", *arguments]) == code
        told = capsys.readouterr().err
        assert told.count("\n") == 1
        assert part in told


def test_it_imports_nothing_that_measures() -> None:
    room = Path(report.__file__).parent
    modules = {
        node.module
        for path in room.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("foveate")
    }
    assert not {name for name in modules if re.search(r"stream|engine|speed|quality|cuda", name)}


def test_bars_begin_at_zero_and_keep_their_proportions() -> None:
    svg = bars([Bar("a", 10.0), Bar("b", 20.0, 15.0, 25.0), Bar("c", -5.0)], "dB")
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', svg)]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[2] == pytest.approx(widths[0] / 2, abs=0.2)
    assert "b: 20.0 dB (15.0 dB to 25.0 dB)" in svg
    assert svg.count("whisker") == 1


def test_points_lie_where_their_values_are() -> None:
    svg = lines([("one", [Point(1, 0), Point(10, 5), Point(100, 10)])], Axis("x", log=True), Axis("y", zero=True))
    at = [(float(x), float(y)) for x, y in re.findall(r'<circle [^>]*cx="([\d.]+)" cy="([\d.]+)"', svg)]
    assert at[1][0] == pytest.approx((at[0][0] + at[2][0]) / 2, abs=0.2)
    assert at[1][1] == pytest.approx((at[0][1] + at[2][1]) / 2, abs=0.2)
    assert at[0][1] > at[2][1]  # y grows downwards


def test_charts_of_little() -> None:
    assert "Nothing was measured" in lines([("one", [])], Axis("x"), Axis("y"))
    outline(lines([("one", [Point(1, 1)])], Axis("x"), Axis("y")))
    outline(bars([Bar("zero", 0.0)], "dB"))
    outline(stacks([("a", [0.0, 0.0])], ["p", "q"], "ms"))
