"""Speed of one case: checked first, then decoding and the pipeline are timed in turns."""

import gc
from collections.abc import Sequence
from typing import Any, Final

from foveate.bench.case import Case, RedCheckError
from foveate.bench.records.writing import clip_record
from foveate.bench.speed.runs import PipelineRun, Run, run_decode, run_pipeline
from foveate.bench.speed.still import enough_still, frame_costs
from foveate.pipeline.timing import StageReport

STATISTIC: Final = "median (of an even number of runs, the faster of the middle two)"


def bench_case(case: Case, repeats: int) -> dict[str, Any]:
    """The record of one case. Raises RedCheckError where it does not do what it should: then there is no number."""
    checked = check(case)
    decodes: list[Run] = []
    pipelines: list[PipelineRun] = []
    for _ in range(repeats):
        gc.collect()
        decodes.append(run_decode(case))
        gc.collect()
        pipelines.append(run_pipeline(case))
        verify(case, decodes[-1], pipelines[-1])
    record = speed_record(case, decodes, pipelines) | clip_record(case.clip, checked.frames)
    if enough_still(checked.still_frames, checked.keyframes):
        record |= frame_costs(case)
    return record | {"settings": case.settings.model_dump(mode="json")}


def check(case: Case) -> PipelineRun:
    """Run both sides once, which also warms them up. Raises RedCheckError."""
    pipeline = run_pipeline(case)
    verify(case, run_decode(case), pipeline)
    return pipeline


def verify(case: Case, decode: Run, pipeline: PipelineRun) -> None:
    """Raise RedCheckError unless both sides saw the same frames, all were written and all kept to the budget."""
    if decode.frames != pipeline.frames:
        raise RedCheckError(f"bare decoding gives {decode.frames} frames, the pipeline {pipeline.frames}")
    if pipeline.lines != pipeline.frames + 1:
        raise RedCheckError(f"{pipeline.frames} frames should give as many lines and a header, got {pipeline.lines}")
    if pipeline.most_tokens > case.settings.budget:
        raise RedCheckError(f"a frame has {pipeline.most_tokens} tokens, the budget is {case.settings.budget}")


def middle(runs: Sequence[Run]) -> Run:
    """The run of median time; of an even number, the faster of the middle two."""
    return sorted(runs, key=lambda run: run.seconds)[(len(runs) - 1) // 2]


def speed_record(case: Case, decodes: Sequence[Run], pipelines: Sequence[PipelineRun]) -> dict[str, Any]:
    """FPS of both sides and their ratio, where the time goes, and the raw samples."""
    decode, pipeline = middle(decodes), middle(pipelines)
    assert isinstance(pipeline, PipelineRun)
    return {
        "name": case.name,
        "decode_fps": decode.fps,
        "pipeline_fps": pipeline.fps,
        "ratio": pipeline.fps / decode.fps,
        "tokens_per_frame": pipeline.tokens / pipeline.frames,
        "changed": pipeline.changed,
        "stages": [stage_record(stage, pipeline.seconds) for stage in pipeline.stages],
        "samples": {
            "decode_seconds": [run.seconds for run in decodes],
            "decode_cpu_seconds": [run.cpu_seconds for run in decodes],
            "pipeline_seconds": [run.seconds for run in pipelines],
            "pipeline_cpu_seconds": [run.cpu_seconds for run in pipelines],
        },
    }


def stage_record(stage: StageReport, seconds: float) -> dict[str, Any]:
    """One stage's milliseconds per frame, and its shares of the run's ``seconds`` of wall-clock time.

    ``cpu`` is the processor time of the stage's own thread; what libraries do in threads of theirs is not in it.
    """
    return {
        "name": stage.name,
        "busy_ms": 1000 * stage.busy / max(stage.items, 1),
        "p50_ms": 1000 * stage.p50,
        "p90_ms": 1000 * stage.p90,
        "p99_ms": 1000 * stage.p99,
        "busy": stage.busy / seconds,
        "cpu": stage.busy_cpu / seconds,
        "waiting_input": stage.waiting_input / seconds,
        "waiting_room": stage.waiting_room / seconds,
    }
