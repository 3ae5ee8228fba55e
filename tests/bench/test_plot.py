"""The plot: from JSON alone."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from foveate.bench import plot
from foveate.bench.plot import check_plot, draw, main
from foveate.pipeline.errors import SettingsError


def test_it_needs_nothing_but_the_json(record: dict[str, Any], tmp_path: Path) -> None:
    results, image = tmp_path / "results.json", tmp_path / "plot.svg"
    results.write_text(json.dumps(record))
    assert main([str(results), str(image)]) == 0
    assert image.read_text().startswith("<?xml")


def test_it_imports_nothing_that_measures() -> None:
    tree = ast.parse(Path(plot.__file__).read_text())
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    assert {name for name in modules if name.startswith("foveate")} == {
        "foveate.pipeline.errors",
        "foveate.pipeline.extras",
    }


def test_bars_and_ratios(record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    figures: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    draw(record, tmp_path / "plot.png")
    speed, stages = figures[0].axes
    assert [bar.get_height() for bar in speed.patches] == [100.0, 100.0, 50.0, 50.0]
    assert [text.get_text() for text in speed.texts] == ["0.50", "0.50"]
    # Stacked: each stage begins where the one below it ends.
    tops = [bar.get_y() + bar.get_height() for bar in stages.patches][::2]
    assert tops == [1.0, 3.0, 6.0, 10.0, 10.5]


def test_a_record_without_cases(record: dict[str, Any], tmp_path: Path) -> None:
    draw({**record, "cases": [], "commit": None, "dirty": None}, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 0


def test_without_matplotlib_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda _: None)
    with pytest.raises(SettingsError, match=r"pip install .*\[plot\]'"):
        check_plot(Path("plot.png"))


@pytest.mark.parametrize(
    "text", ["no JSON", "[1]", "3", "{}", '{"cases": [{"name": "one", "psnr_luma": 30}]}', '{"cases": [7]}']
)
def test_another_file_is_no_record(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "other.json"
    file.write_text(text)
    assert main([str(file), str(tmp_path / "plot.png")]) == 1
    assert capsys.readouterr().err == f"foveate: error: {file} is not a record of foveate bench\n"


@pytest.mark.parametrize("arguments", [[], ["gone.json", "plot.png"], ["results.json", "plot.jpeg2"]])
def test_errors_are_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) in (1, 2)
    assert capsys.readouterr().err.count("\n") == 1
