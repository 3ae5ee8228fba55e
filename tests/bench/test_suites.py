"""The suites: what they measure, how they go on after an end, and what their figures choose."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.app.main import main
from foveate.bench.case import RedCheckError
from foveate.bench.records.jobs import Job, run_jobs
from foveate.bench.suites import suite as suites
from foveate.bench.suites.choice import choices
from foveate.bench.suites.components import agreement, components
from foveate.bench.suites.variants import GROUPS, default_of, with_default
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import Settings

HEAD = {"command": "bench", "suite": "speed", "commit": "c", "dirty": False, "machine": {}, "versions": {}} | {
    "quick": False,
    "plan": {},
}


def job(name: str, done: list[str], error: BaseException | None = None) -> Job:
    """Notes that it ran, then fails or gives one case."""

    def run() -> Sequence[dict[str, Any]]:
        done.append(name)
        if error is not None:
            raise error
        return [{"name": f"{name}, case"}]

    return Job(name, run)


def test_an_interrupted_suite_goes_on_where_it_was(tmp_path: Path) -> None:
    out, ran, said = tmp_path / "record.json", list[str](), list[str]()
    with pytest.raises(KeyboardInterrupt):
        run_jobs(HEAD, [job("a", ran), job("b", ran, KeyboardInterrupt())], out, said.append)
    held = json.loads(out.read_text())
    assert (held["complete"], held["done"], [case["name"] for case in held["cases"]]) == (False, ["a"], ["a, case"])
    assert said[-1] == f"1 of 2 jobs are in {out}; the same command goes on there"
    record = run_jobs(HEAD, [job("a", ran), job("b", ran)], out, said.append)
    assert ran == ["a", "b", "b"]
    assert record == json.loads(out.read_text())
    assert (record["complete"], record["done"]) == (True, ["a", "b"])
    assert [case["name"] for case in record["cases"]] == ["a, case", "b, case"]


def test_a_red_job_is_told_and_tried_again(tmp_path: Path) -> None:
    out, ran = tmp_path / "record.json", list[str]()
    red = run_jobs(HEAD, [job("a", ran, RedCheckError("wrong")), job("b", ran)], None, lambda _: None)
    assert red["red"] == [{"name": "a", "reason": "wrong"}]
    assert [case["name"] for case in red["cases"]] == ["b, case"]
    out.write_text(json.dumps({**red, "complete": False}))
    assert run_jobs(HEAD, [job("a", ran), job("b", ran)], out, lambda _: None)["red"] == []
    assert ran == ["a", "b", "a"]


def test_a_finished_record_is_measured_anew_and_another_one_is_refused(tmp_path: Path) -> None:
    out, ran = tmp_path / "record.json", list[str]()
    for _ in range(2):
        run_jobs(HEAD, [job("a", ran)], out, lambda _: None)
    assert ran == ["a", "a"]
    out.write_text(json.dumps({**HEAD, "plan": {"frames": 2}, "complete": False, "done": [], "cases": []}))
    with pytest.raises(SettingsError, match="unfinished record with another plan; remove it, or name another file"):
        run_jobs(HEAD, [job("a", ran)], out, lambda _: None)
    out.write_text("my notes")
    with pytest.raises(SettingsError, match="is no record of foveate bench: it is not JSON; name another file"):
        run_jobs(HEAD, [job("a", ran)], out, lambda _: None)
    assert out.read_text() == "my notes"


def test_each_variant_is_a_setting_that_there_is() -> None:
    settings = Settings()
    for group in GROUPS:
        variants = with_default(group, settings)
        assert len({variant.value for variant in variants}) == len(variants), group.name
        if group.setting is not None:
            assert default_of(group, settings) in {variant.value for variant in variants}
        for variant in group.variants:
            if variant.weights is None:
                Settings.model_validate(variant.options)


def test_the_default_is_among_the_values_whatever_it_is() -> None:
    (group,) = (group for group in GROUPS if group.name == "score.floor, score on")
    settings = Settings.model_validate({"score": {"floor": 0.07}})
    assert with_default(group, settings)[0].value == default_of(group, settings) == "0.07"


def ablated(value: str, psnr: float, cost: float, clip: str = "one", default: bool = False) -> dict[str, Any]:
    """A case of a group."""
    about = {"group": "g", "value": value, "default": default, "clip": clip, "memory": "frame"}
    return {"name": f"{value} {clip}", "psnr_luma": psnr, "cpu_ms": cost} | about


@pytest.mark.parametrize(
    ("cases", "best"),
    [
        ([ablated("a", 30.0, 1.0, default=True), ablated("b", 31.0, 2.0)], "b"),
        ([ablated("a", 30.0, 1.0, default=True), ablated("b", 30.04, 2.0)], "a"),  # as good, and cheaper
        ([ablated("a", 30.0, 1.0, default=True), ablated("b", 29.96, 0.5)], "b"),
        ([ablated("a", 30.0, 1.0, default=True), ablated("b", 30.0, 0.99)], "a"),  # hardly cheaper
    ],
)
def test_a_choice(cases: list[dict[str, Any]], best: str) -> None:
    (choice,) = choices(cases)
    assert (choice.default, choice.best) == ("a", best)


def test_a_clip_without_every_value_does_not_count() -> None:
    whole = [ablated("a", 30.0, 1.0, default=True), ablated("b", 32.0, 1.0)]
    (choice,) = choices([*whole, ablated("b", 50.0, 1.0, clip="two")])
    assert choice.gains == {"a": 0.0, "b": 2.0}


def test_components_of_embeddings_in_a_plane() -> None:
    generator = np.random.default_rng(3)
    plane = generator.normal(size=(200, 2)) @ generator.normal(size=(2, 8))
    mean, basis = components(plane[:100])
    exact = agreement(mean, basis[:2], plane[100:], plane[:4])
    assert exact["correlation"] == pytest.approx(1)
    assert exact["top_agreement"] == pytest.approx(1)
    assert agreement(mean, basis[:1], plane[100:], plane[:4])["correlation"] < 0.999


@pytest.mark.parametrize("name", ["quality", "speed", "ablation"])
def test_a_whole_suite(
    name: str, tiny_clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveate.bench.suites.curves.HEIGHTS", (90, 180))
    monkeypatch.setattr("foveate.bench.suites.curves.QUICK_HEIGHT", 90)
    monkeypatch.setattr("foveate.bench.suites.curves.STREAMS", (1, 2))
    out, page = tmp_path / "record.json", tmp_path / "page.html"
    flags = ["--suite", name, "--quick", "--frames", "6", "--repeats", "1", "--memory", "stream"]
    assert main(["bench", str(tiny_clip), *flags, "--out", str(out), "--report", str(page)]) == 0
    told = capsys.readouterr()
    record = json.loads(out.read_text())
    assert (told.out, record["red"], record["complete"], record["suite"]) == ("", [], True, name)
    names = [case["name"] for case in record["cases"]]
    assert len(set(names)) == len(names)
    assert page.read_text().startswith("<!doctype html>")
    if name == "speed":
        curves = {case["curve"] for case in record["cases"] if "curve" in case}
        assert curves == {"frame size", "budget", "share changed", "queries", "streams"}
        shares = {case["at"]: case["changed"] for case in record["cases"] if case.get("curve") == "share changed"}
        assert (shares[0], shares[1]) == (0, 1)
        assert 0.4 <= shares[0.5] <= 0.6
        assert all(case["cpu_ms"] == min(case["samples"]["cpu_ms"]) for case in record["cases"] if "curve" in case)
    if name == "ablation":
        assert {case["group"] for case in record["cases"]} == {group.name for group in GROUPS} | {
            "PCA size",
            "channels returned",
        }
    assert main(["bench", "compare", str(out), str(out)]) == 0


def test_a_suite_is_interrupted_with_130(
    tiny_clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suites, "clip_quality", stop)
    assert main(["bench", str(tiny_clip), "--suite", "quality", "--out", str(tmp_path / "record.json")]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--quick"], "--quick goes with --suite quality, speed or ablation"),
        (["--suite", "beauty"], "suite"),
        (["--suite", "speed", "--frames", "0"], "--frames must be at least 1, got 0"),
        (["--suite", "speed", "--report", "nowhere/page.html"], "there is no folder 'nowhere'"),
    ],
)
def test_wrong_arguments(flags: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "clip.mp4", *flags]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
    assert part in told.err


def test_a_file_that_is_not_there_is_red(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--suite", "quality", "--out", str(tmp_path / "record.json")]
    assert main(["bench", str(tmp_path / "gone.mp4"), *flags]) == 1
    assert json.loads((tmp_path / "record.json").read_text())["red"] == [
        {"name": "gone", "reason": "No such file or directory"}
    ]
    assert "gone: red, no numbers: No such file or directory" in capsys.readouterr().err
