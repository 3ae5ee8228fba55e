"""The figures of the pages' tables are those of the records in bench/results."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.pages import PAGES, RESULTS
from tests.docs.pages import page as marked_page

BENCH = PAGES["bench/README.md"]

# What the page of comparisons calls the methods of the quality measure.
METHODS = {
    "whole frame, downscaled": "downscale",
    "uniform cells": "uniform",
    "random cells": "random",
    "saliency alone": "saliency",
    "EVS †": "EVS",
    "EVS, causal": "EVS, causal",
    "DTD †": "DTD",
    "RLT † *": "RLT",
    "VidCom2 †": "VidCom2",
    "STC": "STC",
    "conditional replenishment": "conditional replenishment",
    "AutoGaze-like": "AutoGaze-like",
    "Foveate, frame memory": "Foveate, frame",
    "Foveate, stream memory": "Foveate, stream",
    "Foveate, frame memory, score on": "Foveate, frame, score on",
    "Foveate, stream memory, score on": "Foveate, stream, score on",
}


def record(name: str) -> dict[str, Any]:
    """A record of bench/results."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def page(name: str) -> str:
    """The page docs/``name``.md without the marks of its figures and tables."""
    return re.sub(r"<!-- (= .+?|/?(speeds|quality).*?) -->", "", marked_page(name))


def table(name: str, heading: str) -> list[list[str]]:
    """The cells of the rows of the table of docs/``name``.md whose first line begins with ``heading``."""
    rows = page(name).split(heading)[1].split("\n\n")[0].splitlines()[2:]  # behind the heading's rest and the ruler
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_a_record_is_of_a_commit_as_it_is(path: Path) -> None:
    held = json.loads(path.read_text(encoding="utf-8"))
    assert re.fullmatch("[0-9a-f]{40}", held["commit"])
    assert held["dirty"] is False


def test_speeds() -> None:
    held = record("cpu_2_cores")
    stated = {
        f"{clip}, {memory}": rest
        for clip, memory, *rest in table("comparisons", "| clip | memory | size | decoding, fps |")
    }
    measured = {
        case["name"]: [
            f"{case['width']}x{case['height']}",
            f"{case['decode_fps']:.0f}",
            f"{case['pipeline_fps']:.0f}",
            f"{case['ratio']:.2f}",
        ]
        for case in held["cases"]
    }
    assert [cells[-4:] for cells in stated.values()] == list(measured.values())
    assert list(stated) == list(measured)
    assert (held["machine"]["cores"], held["machine"]["processor"], held["repeats"]) == (2, "AMD EPYC", 5)
    assert {case["settings"]["budget"] for case in held["cases"]} == {273}


def test_the_quality() -> None:
    """Four figures for each method and clip: mean, pooled, worst frame, and that of a reader of constant rate."""
    held = record("quality")
    keys = ("psnr_luma", "psnr_luma_pooled", "psnr_luma_least")
    for clip in ("pedestrians", "bunny", "drift"):
        measured = {
            case["method"]: [
                f"{figure:.1f}" for figure in (*(case[key] for key in keys), case["constant_rate"]["psnr_luma"])
            ]
            for case in held["cases"]
            if case["clip"] == clip
        }
        rows = table("comparisons", f"| {clip} | mean | pooled | worst frame | constant rate |")
        assert [METHODS[name] for name, *_ in rows] == list(METHODS.values())
        assert {METHODS[name]: [cell.strip("*") for cell in cells] for name, *cells in rows} == measured
        for place, figures in enumerate(zip(*measured.values(), strict=True), 1):
            best = max(figures, key=float)
            assert {row[place].strip("*") for row in rows if "*" in row[place]} == {best}
    assert held["budget"] == 273
    assert {case["frames"] for case in held["cases"]} == {60}


def test_the_strategies() -> None:
    kernels = {case["name"]: case["no_kernels"] is None for case in record("gpu_strategies_h200")["cases"]}
    rows = table("strategies", "| strategy | tokens | pedestrians, frame | pedestrians, stream | bunny, frame |")
    assert {name.strip("`") for name, *_ in rows} == {
        case["method"].split(", ")[0] for case in record("strategies")["cases"]
    }
    for name, *_, time in rows:
        assert ("*" in time) != kernels[f"{name.strip('`')}, frame"]


def test_carried_embeddings() -> None:
    cases = [case for case in record("carrying")["cases"] if case["way"] == "as set by default"]
    assert len(cases) == 3
    said = re.search(
        r"fresh one by (\S+) in rank, and (\d+) to\s(\d+)%\sof the top 273 .*?, at\s(\d+)% of the", page("queries")
    )
    assert said is not None
    assert {f"{case['spearman']:.2f}" for case in cases} == {said[1]}
    tops = [round(100 * case["top"]) for case in cases]
    assert (min(tops), max(tops)) == (int(said[2]), int(said[3]))
    assert {round(100 * case["encoded"]) for case in cases} == {int(said[4])}


def test_what_the_gpu_page_says_of_its_records() -> None:
    """The figures are marked, but for those of queries: the cases of that record have no names."""
    steady = next(case["steady"] for case in record("gpu_frame_h200")["cases"] if case["analysis_level"] == 0)
    assert steady["changed"] == pytest.approx(0.1, abs=0.01)
    memory = record("gpu_memory_h200")
    assert memory["device_growth_mib"] <= 0
    assert f"does not grow in {memory['frames']:,} frames" in page("gpu")
    cases = {case["queries"]: case for case in record("gpu_relevance_h200")["cases"]}
    rows = table("gpu", "| device time, ms | 1 query |")
    assert [name for name, *_ in rows] == ["all 8,160 cells", "273 points of the textures"]
    for (_, *cells), way in zip(rows, ("grid_ms", "points_ms"), strict=True):
        assert cells == [f"{cases[queries][way]['p50']:.3f}" for queries in (1, 10, 100)]


def test_people_found() -> None:
    held = record("detection")
    measured = {
        (case["method"], case["budget"]): f"{case['recall']:.2f} ({case['others']:.2f})" for case in held["cases"]
    }
    rows = BENCH.split("| recall (further) | 34 tokens | 68 tokens | 136 tokens | 273 tokens |")[1].split("\n\n")[0]
    stated = {}
    for row in rows.strip().splitlines()[1:]:
        name, *cells = (cell.strip() for cell in row.strip("|").split(" | "))
        stated |= {(name, budget): cell for budget, cell in zip((34, 68, 136, 273), cells, strict=True)}
    assert stated == measured
    assert {case["things"] for case in held["cases"]} == {24}


def bench_rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table in bench/README.md that begins so: cells by the first one."""
    rows = BENCH.split(heading)[1].split("\n\n")[0].splitlines()[2:]
    return {
        name.strip(): [cell.strip() for cell in rest] for name, *rest in (row.strip("|").split(" | ") for row in rows)
    }


def test_words_read() -> None:
    cases = record("words")["cases"]
    stated = bench_rows("| words read, % | slides | scroll | captions | terminal | street |")
    measured: dict[str, list[str]] = {}
    for case in cases:
        measured.setdefault(case["method"], []).append(f"{100 * case['share']:.0f}")
    assert stated == measured


def test_what_is_true_of_generated_clips() -> None:
    cases = {(case["method"], case["clip"]): case for case in record("truth")["cases"]}
    covered, stale = bench_rows("| method | moving things covered, % "), bench_rows("| stale tokens, % | cut |")
    assert covered.keys() == stale.keys() == {method for method, _ in cases}
    for method, cells in covered.items():
        assert cells[0] == f"{100 * cases[method, 'speeds']['coverage']:.1f}"
        assert cells[2] == f"{cases[method, 'arrivals']['first_fine']:.1f}"
        assert stale[method][1] == f"{100 * cases[method, 'fade']['stale']:.1f}"
        assert stale[method][-2] == f"{cases[method, 'rest']['rest_tokens']:.1f}"
