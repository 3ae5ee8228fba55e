"""Arithmetic of the speed record."""

from pathlib import Path

import pytest

from foveate.bench.case import Case, Clip, RedCheckError, cases_of, file_clips
from foveate.bench.speed.runs import PipelineRun, Run
from foveate.bench.speed.turns import middle, speed_record, stage_record, verify
from foveate.pipeline.settings import Settings
from foveate.pipeline.timing import StageReport

STAGE = StageReport("cascade", 100, 1.5, 0.5, 0.25, 0.125, 0.010, 0.020, 0.030)
CASE = Case("clip", Clip("clip", Path("clip.mp4")), Settings())


def pipeline_run(seconds: float, frames: int = 100, lines: int = 101, most: int = 273) -> PipelineRun:
    return PipelineRun(frames, seconds, 2 * seconds, lines, 200 * frames, most, 0.25, 0, 4, (STAGE,))


def test_the_ratio_is_that_of_the_middle_runs() -> None:
    decodes = [Run(100, seconds, seconds) for seconds in (1.0, 9.0, 0.5)]
    pipelines = [pipeline_run(seconds) for seconds in (4.0, 2.0, 2.5)]
    record = speed_record(CASE, decodes, pipelines)
    assert (record["decode_fps"], record["pipeline_fps"], record["ratio"]) == (100.0, 40.0, 0.4)
    assert record["tokens_per_frame"] == 200
    assert record["samples"]["decode_seconds"] == [1.0, 9.0, 0.5]
    assert record["samples"]["pipeline_cpu_seconds"] == [8.0, 4.0, 5.0]
    assert record["stages"][0]["busy"] == 1.5 / 2.5


def test_of_an_even_number_of_runs_the_faster_of_the_middle_two() -> None:
    assert middle([Run(1, seconds, 0.0) for seconds in (4.0, 1.0, 3.0, 2.0)]).seconds == 2.0
    assert middle([Run(1, 7.0, 0.0)]).seconds == 7.0


def test_a_stage_in_milliseconds_and_shares() -> None:
    assert stage_record(STAGE, 2.0) == {
        "name": "cascade",
        "busy_ms": 15.0,
        "p50_ms": 10.0,
        "p90_ms": 20.0,
        "p99_ms": 30.0,
        "busy": 0.75,
        "cpu": 0.25,
        "waiting_input": 0.125,
        "waiting_room": 0.0625,
    }


@pytest.mark.parametrize(
    ("pipeline", "reason"),
    [
        (pipeline_run(1.0, frames=99, lines=100), "bare decoding gives 100 frames, the pipeline 99"),
        (pipeline_run(1.0, lines=100), "100 frames should give as many lines and a header, got 100"),
        (pipeline_run(1.0, most=274), "a frame has 274 tokens, the budget is 273"),
    ],
)
def test_what_is_red(pipeline: PipelineRun, reason: str) -> None:
    with pytest.raises(RedCheckError, match=f"^{reason}$"):
        verify(CASE, Run(100, 1.0, 1.0), pipeline)


def test_what_is_not_red() -> None:
    verify(CASE, Run(100, 1.0, 1.0), pipeline_run(1.0))


def test_clips_are_named_by_their_stems_unless_these_are_equal() -> None:
    assert [clip.name for clip in file_clips(["a/one.mp4", "two.mkv"])] == ["one", "two"]
    assert [clip.name for clip in file_clips(["a/one.mp4", "b/one.mp4"])] == ["a/one.mp4", "b/one.mp4"]


def test_one_memory_does_not_change_the_name() -> None:
    (case,) = cases_of([CASE.clip], Settings(), ["stream"])
    assert (case.name, case.settings.allocation.memory) == ("clip", "stream")
