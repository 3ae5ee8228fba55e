"""PSNR inside given boxes: tokens per region, against as many tokens for the whole picture.

python -m foveate.bench.cases.region_tokens tests/pipeline/pedestrians_boxes.txt --out region_tokens.json

Frame memory. In every frame that has boxes, all methods get as many tokens as the regions took.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip
from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.clips.samples import clips_of
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.peers.sent import Sent, at_once
from foveate.bench.reader.painting import decibels, tokens_of
from foveate.bench.reader.texture import Texture
from foveate.bench.records.jobs import Job, run_benchmark
from foveate.bench.records.table import methods_table
from foveate.bench.records.writing import method_cases
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.push_stream import open_push_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings

Boxes = Mapping[int, list[list[int]]]
"""Boxes [x, y, w, h] in pixels, by the number of the frame."""

_BOXES = "Boxes, one a line: number of the frame, left, top, width and height in pixels. Lines with # are passed over."
_VIDEO = "The video. Default: the sample with pedestrians."
_REST = 273  # tokens of frames without boxes, which methods read for what moves


def region_tokens(
    boxes: Annotated[Positional[str], arg(metavar="BOXES", help=_BOXES)],
    video: Annotated[Positional[str | None], arg(metavar="FILE", help=_VIDEO)] = None,
    out: Out = None,
    tokens: Annotated[tuple[int, ...], arg(metavar="N ...", help="Tokens of a region.")] = (8, 16, 32, 64),
    query: Annotated[str, arg(metavar="TEXT", help="Also measure the whole picture with this query.")] = "moving",
) -> None:
    """Compare the reader's picture inside the boxes."""
    check_least(1, tokens=min(tokens))
    check_folders(out=out)
    read = read_boxes(Path(boxes))
    (clip,) = clips_of(() if video is None else (video,), "pedestrians")
    plan = {"clip": clip.name, "boxes": Path(boxes).name, "tokens": list(tokens), "query": query}
    measure = partial(clip_regions, clip, read, query)
    jobs = [Job(f"{clip.name}, {each}", partial(measure, each)) for each in tokens]
    run_benchmark("region_tokens", plan, jobs, out, regions_table)


def read_boxes(path: Path) -> Boxes:
    """The boxes of each frame. Raises SettingsError for what is no such file."""
    try:
        lines = [line for line in path.read_text("utf-8").splitlines() if line.partition("#")[0].strip()]
        rows = np.loadtxt(lines, np.int64, ndmin=2) if lines else np.empty((0, 5), np.int64)
    except (OSError, ValueError) as error:
        raise SettingsError(f"BOXES: {path} cannot be read: {error}") from None
    if not len(rows) or rows.shape[1] != 5:
        raise SettingsError(f"BOXES: {path} must have lines of five numbers, and has {rows.shape[0]}x{rows.shape[1]}")
    if rows.min() < 0 or rows[:, 3:].min() < 1:
        raise SettingsError(f"BOXES: {path} must have no negative number, and no box without area")
    return {int(frame): rows[rows[:, 0] == frame, 1:].tolist() for frame in np.unique(rows[:, 0])}


def clip_regions(clip: Clip, boxes: Boxes, query: str, each: int) -> list[dict[str, Any]]:
    """One case per method, at ``each`` tokens a region."""
    footage = read_footage(clip.path, max(boxes) + 1)
    height, width = footage.shapes[0]
    inside = all(x < width and y < height for x, y, *_ in chain.from_iterable(boxes.values()))
    if len(footage.pictures) <= max(boxes) or not inside:
        raise SettingsError(f"BOXES: all boxes must lie in frames of {clip.name}")
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        file = Path(folder) / "boxes.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in lines_of(boxes)))
        asked = {index: each * len(there) for index, there in boxes.items()}
        by_region = chosen(footage, asked, {"regions": str(file), "region_tokens": each})
    budgets = {index: len(by_region[index]) for index in boxes}
    selections = {
        "tokens per region": by_region,
        "whole picture": chosen(footage, budgets, {}),
        f"whole picture, query {query}": chosen(footage, budgets, {"query": (query,)}),
    }
    found = {method: inside_boxes(footage, tokens, boxes) for method, tokens in selections.items()}
    return method_cases(clip, len(footage.pictures), found, region_tokens=each)


def lines_of(boxes: Boxes) -> Iterator[dict[str, Any]]:
    """The lines of a file for --regions: the boxes of each frame hold for that frame alone."""
    for index, there in boxes.items():
        yield {"frame": index, "regions": [{"name": str(at), "box": box} for at, box in enumerate(there)]}
        if index + 1 not in boxes:
            yield {"frame": index + 1, "regions": []}


def chosen(footage: Footage, budgets: Mapping[int, int], options: Mapping[str, Any]) -> list[Selection]:
    """The tokens of all frames, at most ``budgets`` where there is one."""
    with open_push_stream(engine="cpu", **options) as stream:
        found = []
        for index, picture in enumerate(footage.pictures):
            stream.set_budget(budgets.get(index, _REST))
            found.append(stream.push(picture.rgb))
    return found


def inside_boxes(footage: Footage, selections: Sequence[Selection], boxes: Boxes) -> dict[str, Any]:
    """PSNR of luma inside the boxes, in dB: pooled over all their pixels, and the mean of the frames; and tokens."""
    errors, pixels, tokens = [], [], []
    for index, shown in enumerate(at_once(_sent(footage, selections), footage)):
        if index in boxes:
            where = pixels_in(boxes[index], footage.shapes[0])
            difference = shown.planes[0][where].astype(np.float64) - footage.pictures[index].luma[where]
            errors.append(float(np.sum(difference**2)))
            pixels.append(int(where.sum()))
            tokens.append(shown.tokens)
    frames = [decibels(error / count) for error, count in zip(errors, pixels, strict=True)]
    return {
        "psnr": decibels(sum(errors) / sum(pixels)),
        "psnr_frames": fmean(frames),
        "tokens_per_frame": fmean(tokens),
        "boxes": sum(map(len, boxes.values())),
        "samples": {"psnr": frames, "tokens": tokens},
    }


def pixels_in(boxes: Sequence[Sequence[int]], shape: Sequence[int]) -> NDArray[np.bool_]:
    """bool[H, W]: the pixels inside any of ``boxes``."""
    inside = np.zeros(shape, np.bool_)
    for x, y, width, height in boxes:
        inside[max(y, 0) : y + height, max(x, 0) : x + width] = True
    return inside


def _sent(footage: Footage, selections: Sequence[Selection]) -> Iterator[Sent]:
    change = Settings().change
    texture = Texture(change.threshold, change.noise)
    for picture, selection in zip(footage.pictures, selections, strict=True):
        yield Sent(texture.show(picture, selection.keyframe), tokens_of(selection))


def regions_table(record: Mapping[str, Any]) -> str:
    """One row per method, one column per number of tokens a region: dB inside the boxes, and tokens a frame."""
    cases = [case | {"each": f"{case['region_tokens']} a region"} for case in record["cases"]]
    said = "PSNR inside the boxes, dB (tokens a frame)"
    return (
        methods_table(said, cases, "each", lambda case: f"{case['psnr']:.1f} ({case['tokens_per_frame']:.0f})") + "\n"
    )


if __name__ == "__main__":
    run_module(region_tokens)
