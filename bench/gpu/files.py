"""Frames per second of files decoded and selected on the GPU, against bare decoding by the same hardware:

python -m foveate.bench.gpu.files FILE --out gpu_files.json
"""

import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.clips.encoding import looped
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.bare import decode_bare
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.cuda.driver.device import Device
from foveate.pipeline import open_stream

_REPEATS: Final = 3
_AT_ONCE: Final = 8


def gpu_files(
    file: Annotated[Positional[str], arg(metavar="FILE", help="A video that the hardware decodes.")],
    out: Out = None,
    times: Annotated[int, arg(metavar="N", help="Alone, the file is played this often, as one longer file.")] = 30,
    together: Annotated[int, arg(metavar="N", help="The same where eight are played at once.")] = 12,
    levels: Annotated[tuple[int, ...], arg(metavar="N ...", help="Analysis levels.")] = (0,),
) -> None:
    """Compare one file, and eight at once, with bare decoding of the same files in the same run."""
    record = new_record("gpu_files", out)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clips = {count: Path(folder) / f"{often}_times.mp4" for count, often in ((1, times), (_AT_ONCE, together))}
        frames = {count: looped(Path(file), clips[count], often) for count, often in ((1, times), (_AT_ONCE, together))}
        with Device() as device:
            record["card"] = device.name
            record["clip"] = clip_record(Clip(Path(file).stem, Path(file)), frames[1] // times)
            record |= {"times": times, "together": together}
            decode_bare(str(clips[_AT_ONCE]))  # warms up, as the pipeline's first run does
            for level in levels:
                for count, clip in clips.items():
                    case = _case(clip, frames[count], count, level)
                    record["cases"].append(case)
                    say(
                        f"{count} at once, analysis level {level}: bare {case['decode_fps']:.0f} fps, "
                        f"pipeline {case['pipeline_fps']:.0f} fps, ratio {case['ratio']:.3f}"
                    )
                    for stage in case["stages"]:
                        say(
                            f"    {stage['name']:8} busy {stage['busy_ms']:.3f} ms per frame, p99 {stage['p99_ms']:.3f}"
                        )
    hand_out(record, out)


def _case(clip: Path, frames: int, count: int, level: int) -> dict[str, Any]:
    reports: list[Any] = []

    def select() -> int:
        with open_stream(str(clip), engine="cuda", analysis_level=level) as stream:
            if stream.info.decoded_on_cpu is not None:
                raise RedCheckError(f"{clip.name} was decoded on the CPU: {stream.info.decoded_on_cpu}")
            seen = sum(1 for _ in stream)
            reports[:] = stream.report()
        return seen

    _timed(select, 1, frames)  # compiles and loads the kernels
    decodes, pipelines = [], []
    for _ in range(_REPEATS):
        decodes.append(_timed(lambda: decode_bare(str(clip)), count, frames))
        pipelines.append(_timed(select, count, frames))
    decode, pipeline = sorted(decodes)[_REPEATS // 2], sorted(pipelines)[_REPEATS // 2]
    return {
        "name": f"{count} at once, analysis level {level}",
        "at_once": count,
        "frames": frames,
        "analysis_level": level,
        "decode_fps": count * frames / decode,
        "pipeline_fps": count * frames / pipeline,
        "ratio": decode / pipeline,
        "stages": [
            {"name": stage.name, "busy_ms": 1000 * stage.busy / max(stage.items, 1), "p99_ms": 1000 * stage.p99}
            for stage in reports
        ],
        "samples": {"decode_seconds": decodes, "pipeline_seconds": pipelines},
    }


def _timed(call: Callable[[], int], count: int, frames: int) -> float:
    """Seconds until ``count`` threads have each called; raises RedCheckError unless each saw all frames."""
    seen: list[int] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            seen.append(call())
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(count)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - start
    if failures:
        raise RedCheckError(f"a run failed: {failures[0]}")
    if seen != [frames] * count:
        raise RedCheckError(f"{count} runs over {frames} frames gave {seen}")
    return seconds


if __name__ == "__main__":
    run_module(gpu_files)
