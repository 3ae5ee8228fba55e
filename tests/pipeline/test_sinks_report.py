"""The report: what stands in the page, read by an HTML parser; figures with values worked out by hand."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.selection import Header
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import open_report
from foveate.pipeline.sinks.report import sink as report_sink
from foveate.pipeline.sinks.report.figures import Figures
from tests.pipeline.test_sinks_overlay import frame, selection

CONFIG = {**Settings().model_dump(mode="json"), "engine": "cpu"}


def header(**changes: Any) -> Header:
    return Header("a <b> & c.mp4", 64, 48, 10.0, {**CONFIG, **changes}, notes=("interlaced <i>",))


class Page(HTMLParser):
    """Texts, tags and settings of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(path.read_text("utf-8"))
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append(data.strip())

    def after(self, text: str) -> str:
        return self.texts[self.texts.index(text) + 1]

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def written(path: Path, counts: list[int], made: Header | None = None, **extras: Any) -> Page:
    """A report of frames with so many tokens each, at 10 frames a second."""
    sink = open_report(str(path))
    sink.open(made or header())
    for index, count in enumerate(counts):
        chosen = selection(
            64, 48, [(8 + 16 * k, 8, 0) for k in range(count)], index=index, time=index / 10,
            keyframe=None if index else "first", changed=index / 4, **extras,
        )  # fmt: skip
        sink.write(frame(64, 48, index), chosen)
    sink.close()
    return Page(path)


def test_the_figures_of_the_page(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", [4, 2, 0])
    summary = {name: page.after(name) for name in ("Size", "Frames", "Time", "Tokens", "Keyframes")}
    assert summary == {"Size": "64x48", "Frames": "3", "Time": "0.2 s", "Tokens": "6", "Keyframes": "1"}
    assert page.after("Tokens a frame") == "2.0 of 273"
    assert page.after("Tiles changed, mean") == "25.0%"
    assert page.after("PSNR, mean") == "100.0 dB"  # grey on grey
    assert page.texts.count("a <b> & c.mp4") == 1  # what is read is text, not markup
    assert "interlaced <i>" in page.texts
    assert not {"b", "i"} & {tag for tag, _ in page.tags}


def test_it_needs_no_other_file(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", [1, 1])
    for tag, attributes in page.tags:
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), (tag, attributes)
    assert "url(" not in (tmp_path / "a.html").read_text()


def test_lines_go_through_every_frame(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", [4, 2, 0])
    tokens = next(attributes["d"] for attributes in page.named("path") if (attributes["d"] or "").count(",") == 3)
    assert tokens == "M0.0,2.0 500.0,50.0 1000.0,98.0"


def test_of_many_frames_no_peak_is_lost() -> None:
    figures = Figures()
    for index in range(10_000):
        peak = index == 4567
        figures.add(selection(64, 48, [(8, 8, 0)] * (99 if peak else 1), index=index, time=float(index)), 40.0)
    from foveate.pipeline.sinks.report.page import page

    text = page(header(), figures, 10_000)
    line = next(line for line in re.findall(r' d="(M[^"]*)"', text) if line.count(",") > 100)
    points = [tuple(map(float, point.split(","))) for point in line[1:].split()]
    assert len(points) <= 1000
    assert (456.7, 2.0) in [(round(x, 1), y) for x, y in points]


def test_settings_that_differ_stand_out(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", [1], header(budget=50))
    assert page.after("budget") == "50"
    assert page.after("change.keyframe_interval") == "30"
    rows = [attributes.get("class") for attributes in page.named("tr")]
    assert rows.count("changed") == 2  # and the engine, of which the default is auto


def test_what_was_asked_and_when(tmp_path: Path) -> None:
    page = written(tmp_path / "a.html", [1], header(query=["red", "-<b>"]))
    assert page.after("Query") == "red, -<b>"
    assert written(tmp_path / "b.html", [1]).after("Query") == "None."
    figures = Figures()
    figures.add(selection(64, 48, []), np.inf)
    figures.add(selection(64, 48, [], index=1, time=1.5, extras={"query": ["blue"]}), 30.0)
    assert figures.queries == [(1.5, ("blue",))]


def test_a_long_clip_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_sink, "MOST_PICTURES", 3)
    page = written(tmp_path / "a.html", [1] * 5)
    assert "The video holds the first 3 of 5 frames." in page.texts
    assert page.after("Frames") == "5"


def test_names_that_are_no_pages_and_places_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"unknown suffix '.pdf'; possible are .html"):
        open_report("a.pdf")
    with pytest.raises(SinkError, match="its directory does not exist"):
        open_report(str(tmp_path / "no" / "a.html")).open(header())
