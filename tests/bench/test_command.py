"""``foveate bench``: its record, its checks, its errors."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from foveate.bench.clips.samples import sample_folder
from foveate.bench.speed import runs, turns

STAGES = ["decode", "upload", "pyramid", "cascade", "output"]


def test_the_record(tiny_clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "results.json"
    code = main(["bench", str(tiny_clip), "--repeats", "2", "--out", str(out), "--report", str(tmp_path / "page.html")])
    told = capsys.readouterr()
    record = json.loads(out.read_text())
    assert (code, told.out, record["red"]) == (0, "", [])
    assert "tiny" in told.err
    assert "ratio" in told.err
    assert set(record["machine"]) >= {"processor", "cores", "memory_gib", "system"}
    assert set(record["versions"]) == {"python", "numpy", "opencv", "av", "ffmpeg", "foveate"}
    assert {"commit", "dirty", "statistic", "repeats"} <= set(record)
    (case,) = record["cases"]
    assert (case["name"], case["frames"], case["width"], case["height"]) == ("tiny", 12, 96, 64)
    assert case["file"] == "tiny.mp4"
    assert case["bytes"] == tiny_clip.stat().st_size
    assert len(case["sha256"]) == 64
    assert case["settings"]["budget"] == 273
    assert [stage["name"] for stage in case["stages"]] == STAGES
    assert all(stage["p50_ms"] <= stage["p90_ms"] <= stage["p99_ms"] for stage in case["stages"])
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_numbers_come_from_the_raw_samples(tiny_clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(tiny_clip), "--repeats", "3"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    decode, pipeline = (sorted(case["samples"][f"{side}_seconds"]) for side in ("decode", "pipeline"))
    assert len(decode) == len(pipeline) == 3
    assert case["decode_fps"] == pytest.approx(12 / decode[1])
    assert case["pipeline_fps"] == pytest.approx(12 / pipeline[1])
    assert case["ratio"] == pytest.approx(decode[1] / pipeline[1])


def test_frames_and_memories(tiny_clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--frames", "4", "--memory", "frame", "stream", "--repeats", "1"]
    assert main(["bench", str(tiny_clip), *flags]) == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    assert [case["name"] for case in cases] == ["tiny, frame", "tiny, stream"]
    assert [case["settings"]["allocation"]["memory"] for case in cases] == ["frame", "stream"]
    assert {case["frames"] for case in cases} == {4}


def test_a_preset(tiny_clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(tiny_clip), "--config", "stream", "--repeats", "1"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    assert case["name"] == "tiny"
    assert case["settings"]["allocation"]["memory"] == "stream"


def test_a_still_clip_tells_what_a_still_frame_costs(still_clip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", str(still_clip), "--repeats", "1"]) == 0
    (case,) = json.loads(capsys.readouterr().out)["cases"]
    costs = case["frame_costs"]
    # Keyframes at 0, 30 and 60; the first is left out.
    assert len(costs["keyframe"]["samples_ms"]) == 2
    assert len(costs["still_frame"]["samples_ms"]) == 67
    for kind in ("keyframe", "still_frame"):
        assert case[f"{kind}_ms"] == pytest.approx(sum(costs[kind]["samples_ms"]) / len(costs[kind]["samples_ms"]))
        parts = sum(costs[kind][f"{stage}_ms"] for stage in STAGES[1:])
        assert case[f"{kind}_ms"] == pytest.approx(parts)
    assert case["still_share"] == pytest.approx(case["still_frame_ms"] / case["keyframe_ms"])


def _red(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[dict[str, Any], str]:
    assert main(["bench", *arguments, "--repeats", "1"]) == 1
    told = capsys.readouterr()
    record: dict[str, Any] = json.loads(told.out)
    return record, told.err


def test_other_frame_counts_are_red(
    tiny_clip: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "decode_bare", lambda *_: 11)
    record, said = _red([str(tiny_clip)], capsys)
    reason = "bare decoding gives 11 frames, the pipeline 12"
    assert record["cases"] == []
    assert record["red"] == [{"name": "tiny", "reason": reason}]
    assert reason in said
    assert "fps" not in said


def test_more_tokens_than_the_budget_are_red(
    tiny_clip: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    true_run = runs.run_pipeline

    def generous(case: Any) -> Any:
        return dataclasses.replace(true_run(case), most_tokens=274)

    monkeypatch.setattr(turns, "run_pipeline", generous)
    record, said = _red([str(tiny_clip)], capsys)
    assert record["cases"] == []
    assert record["red"] == [{"name": "tiny", "reason": "a frame has 274 tokens, the budget is 273"}]
    assert "fps" not in said


def test_a_file_that_cannot_be_read_is_red_and_the_others_are_benched(
    tiny_clip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video at all")
    record, said = _red([str(bad), str(tiny_clip), str(tmp_path / "gone.mp4")], capsys)
    assert [case["name"] for case in record["cases"]] == ["tiny"]
    assert [red["name"] for red in record["red"]] == ["bad", "gone"]
    assert all(red["reason"].startswith("the pipeline failed: ") for red in record["red"])
    assert "bad: red, no numbers" in said


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--repeats", "0"], "--repeats must be at least 1, got 0"),
        (["--frames", "0"], "--frames must be at least 1, got 0"),
        (["--out", "nowhere/r.json"], "--out 'nowhere/r.json': there is no folder 'nowhere'"),
        (["--memory", "both"], "memory"),
        (["--config", "unheard-of"], "neither a preset nor a file"),
    ],
)
def test_wrong_arguments(flags: list[str], part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "clip.mp4", *flags]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert part in told.err


def test_a_flag_of_another_command_is_not_its_own_suggestion(
    tiny_clip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", str(tiny_clip), "--engine", "cpu"]) == 2
    told = capsys.readouterr().err
    assert "unknown option --engine" in told
    assert "mean --engine?" not in told


def test_without_sample_clips_one_line_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveate.bench.clips.samples.ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["bench"]) == 1
    told = capsys.readouterr()
    assert told.err.count("\n") == 1
    assert "there are no sample clips here; run this in a clone" in told.err


def test_an_installed_copy_finds_the_sample_clips_of_the_clone_that_it_runs_in(
    samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveate.bench.clips.samples.ROOT", tmp_path)
    monkeypatch.chdir(samples.parent)
    assert sample_folder() == samples


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--help"]) == 0
    told = capsys.readouterr().out
    for flag in ("FILE", "--out", "--report", "--suite", "--quick", "--repeats", "--frames", "--memory", "--config"):
        assert flag in told
