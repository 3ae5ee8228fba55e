"""Figures in a text that come from records."""

import json
from pathlib import Path

import pytest

from foveate.bench.entry import exit_code
from foveate.bench.figures.page import figures, renewed


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A folder with one record."""
    cases = [{"name": "a, b", "ms": {"p50": 2.0}}, {"name": "c", "ms": {"p50": 8.0}}]
    record = {"times": {"x": 31.04}, "share": 0.257, "kernels": [{"name": "Emit", "us": 6.14}], "cases": cases}
    (tmp_path / "one.json").write_text(json.dumps(record))
    return tmp_path


@pytest.mark.parametrize(
    ("mark", "figure"),
    [
        ("one / times.x / .1f", "31.0"),
        ("one / share / .0%", "26%"),
        ("one / a, b > ms.p50 / .2f", "2.00"),
        ("one / c > ms.p50 : a, b > ms.p50 / .1f", "4.0"),
        ("one / kernels.Emit.us / .1f", "6.1"),
        ("one / kernels.Gone.us / .1f", "?"),
        ("none / times.x / .1f", "?"),
        ("one / gone > ms.p50 / .1f", "?"),
        ("one / c > ms.p50 : times.y / .1f", "?"),
    ],
)
def test_a_figure(mark: str, figure: str, results: Path) -> None:
    text = f"It is 7.7<!-- = {mark} --> times, in 2026."
    assert renewed(text, results) == f"It is {figure}<!-- = {mark} --> times, in 2026."


def test_the_table_of_an_ablation(results: Path) -> None:
    cases = [
        {"name": value, "group": "g", "value": value, "default": value == "on", "clip": "one", "memory": "frame"}
        | {"psnr_luma": psnr, "cpu_ms": ms}
        for value, psnr, ms in (("on", 30.0, 2.0), ("off", 31.5, 3.0))
    ]
    (results / "two.json").write_text(json.dumps({"cases": cases}))
    text = renewed("<!-- ablation two -->\nold\n<!-- /ablation -->\n", results)
    assert text.splitlines()[-3:-1] == ["| g | on | +0.00 | 1.00 | default |", "|  | off | +1.50 | 1.50 | chosen |"]


def test_the_table_of_speeds(results: Path) -> None:
    case = {"name": "a, frame", "width": 64, "height": 48, "decode_fps": 200.4, "pipeline_fps": 99.6, "ratio": 0.497}
    (results / "two.json").write_text(json.dumps({"cases": [case]}))
    text = renewed("<!-- speeds two -->\n<!-- /speeds -->\n", results)
    assert text.splitlines()[1:-1] == [
        "| clip | memory | size | decoding, fps | Foveate, fps | ratio |",
        "|---|---|---|---:|---:|---:|",
        "| a | frame | 64x48 | 200 | 100 | 0.50 |",
    ]


def test_the_table_of_quality(results: Path) -> None:
    cases = [
        {"method": method, "clip": "one", "psnr_luma": mean, "psnr_luma_pooled": 30.0, "psnr_luma_least": least}
        | {"constant_rate": {"psnr_luma": mean}}
        for method, mean, least in (("downscale", 31.04, 20.0), ("STC", 31.06, 10.0))
    ]
    (results / "two.json").write_text(json.dumps({"cases": cases}))
    text = renewed("<!-- quality two -->\n<!-- /quality -->\n", results)
    assert text.splitlines()[1:-1] == [
        "| one | mean | pooled | worst frame | constant rate |",
        "|---|---:|---:|---:|---:|",
        "| whole frame, downscaled | 31.0 | **30.0** | **20.0** | 31.0 |",
        "| STC | **31.1** | **30.0** | 10.0 | **31.1** |",
    ]


def test_the_command(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("foveate.bench.figures.page.RESULTS", results)
    page = tmp_path / "page.md"
    page.write_text("?<!-- = one / share / .3f -->")
    assert exit_code(figures, [str(page)]) == 0
    assert page.read_text() == "0.257<!-- = one / share / .3f -->"
    assert exit_code(figures, [str(tmp_path / "gone.md")]) == 1
    assert "cannot read" in capsys.readouterr().err
