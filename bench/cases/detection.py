"""Recall of an object detector on the reader's picture, against its detections in the whole frames:

python -m foveate.bench.cases.detection --model person.onnx --tile 300 --out detection.json

Any detector in ONNX of the kinds that bench/cases/detector.py knows. An interrupted run resumes from its file.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from foveate.bench.case import Clip
from foveate.bench.cases.detector import Detections, Detector, matched, open_detector
from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.clips.samples import clips_of
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.peers.methods import with_queries
from foveate.bench.peers.sent import Method, at_once
from foveate.bench.reader.painting import rgb_of
from foveate.bench.records.jobs import Job, run_benchmark
from foveate.bench.records.table import methods_table
from foveate.bench.records.writing import method_cases, sha256
from foveate.pipeline.errors import SettingsError

_FILES = "Video files. Default: the sample with pedestrians."
_TILE = "Look at overlapping squares of this many pixels, for small things. 0: at whole pictures."


def detection(
    model: Annotated[str, arg(metavar="FILE.onnx", help="The detector.")],
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help=_FILES)] = (),
    out: Out = None,
    budgets: Annotated[tuple[int, ...], arg(metavar="N ...", help="Tokens per frame.")] = (34, 68, 136, 273),
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
    every: Annotated[int, arg(metavar="N", help="Use the last of every N frames.")] = 5,
    least: Annotated[float, arg(metavar="SCORE", help="Lowest score of a detection that counts.")] = 0.5,
    tile: Annotated[int, arg(metavar="N", help=_TILE)] = 0,
    query: Annotated[str, arg(metavar="TEXT", help="Also measure Foveate with this query.")] = "moving",
) -> None:
    """Compare detections in the reader's picture with those in the whole frames."""
    check_least(1, frames=frames, every=every, budgets=min(budgets))
    check_folders(out=out)
    if tile != 0:
        check_least(32, tile=tile)
    if not 0 < least <= 1:
        raise SettingsError(f"--least must be above 0 and at most 1, got {least}")
    detector = open_detector(Path(model), least, tile)
    clips = clips_of(files, "pedestrians")
    plan = {
        "clips": [clip.name for clip in clips],
        "model": {"file": Path(model).name, "sha256": sha256(Path(model))},
        "budgets": list(budgets),
        "frames": frames,
        "every": every,
        "least": least,
        "tile": tile,
        "query": query,
    }
    measure = partial(clip_detection, detector=detector, frames=frames, every=every, query=query)
    jobs = [Job(f"{clip.name}, {budget}", partial(measure, clip, budget)) for clip in clips for budget in budgets]
    run_benchmark("detection", plan, jobs, out, detection_table)


def clip_detection(
    clip: Clip, budget: int, detector: Detector, frames: int, every: int, query: str
) -> list[dict[str, Any]]:
    """One case per method at one budget."""
    footage = read_footage(clip.path, frames)
    places = range(every - 1, len(footage.pictures), every)
    true = {place: detector.find(rgb_of(footage.pictures[place].planes)) for place in places}
    methods = {name: method for name, method in with_queries(query).items() if name != "whole frame"}
    found = {name: method_detection(method, footage, budget, true, detector) for name, method in methods.items()}
    return method_cases(clip, len(footage.pictures), found, budget=budget)


def method_detection(
    method: Method, footage: Footage, budget: int, true: Mapping[int, Detections], detector: Detector
) -> dict[str, Any]:
    """``recall``: the share found again, over the frames of ``true``; ``others``: how many more, as a share."""
    again, others = [], []
    for place, shown in enumerate(at_once(method(footage, budget), footage)):
        if place in true:
            found = detector.find(rgb_of(shown.planes))
            again.append(matched(true[place], found))
            others.append(len(found.boxes) - again[-1])
    total = sum(len(each.boxes) for each in true.values())
    return {
        "things": total,
        "found": sum(again),
        "recall": sum(again) / max(total, 1),
        "others": sum(others) / max(total, 1),
        "samples": {"found": again, "others": others},
    }


def detection_table(record: Mapping[str, Any]) -> str:
    """For each clip, one row per method, one column per budget: recall, in brackets what was found besides."""
    tables = []
    for clip in dict.fromkeys(case["clip"] for case in record["cases"]):
        cases = [case | {"tokens": f"{case['budget']} tokens"} for case in record["cases"] if case["clip"] == clip]
        tables.append(methods_table(clip, cases, "tokens", _recall) + "\n")
    return "\n".join(tables)


def _recall(case: Mapping[str, Any]) -> str:
    return f"{case['recall']:.2f} ({case['others']:.2f})"


if __name__ == "__main__":
    run_module(detection)
