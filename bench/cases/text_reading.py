"""An experiment: recognising text only where tokens are fine, at full resolution. Needs foveate[ocr]:

python -m foveate.bench.cases.text_reading --out text_reading.json

Signs of known words and sizes are drawn on enlarged frames of the samples. An OCR model, which finds lines and reads
them, is given the whole frame; the frame downscaled to as many pixels as tokens have; and the areas that tokens of
LOD 0 and 1 cover, as the tokens show them, chosen for the query "text" by strokes or by the product's detector. Last,
it is spared finding lines: it reads, at full resolution, the lines that the product's detector finds.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Final, Literal

import cv2
import numpy as np
from tyro.conf import arg

from foveate.bench.cases.words import found, reader
from foveate.bench.clips.footage import CELL, Plane, read_footage
from foveate.bench.clips.samples import SAMPLES, sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.reader.painting import NOT_SHOWN, Lods, ReaderPicture, lods_of, rgb_of
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.scenes.signs import HEIGHT, SIZES, WIDTH, Signs, enlarged, signs_on
from foveate.pipeline import open_stream
from foveate.pipeline.settings import OcrSettings
from foveate.pipeline.text.boxes import Box
from foveate.pipeline.text.detector import open_detector

FINE: Final = 1
"""LOD up to which tokens are read: letters of twice the least size stay legible at it."""
_SMALLEST_SIDE: Final = 64  # pixels to which the OCR model enlarges an area at least

Sources = Literal["strokes", "ocr"]
Read = Callable[[Plane], str]


def text_reading(
    out: Out = None,
    pictures: Annotated[int, arg(metavar="N", help="Pictures on each sample.")] = 4,
    budget: Annotated[int, arg(metavar="N", help="Tokens per picture.")] = 273,
) -> None:
    """Count the words that are read, by size, and the processor time, for OCR on frames, tokens and lines."""
    check_least(1, pictures=pictures, budget=budget)
    record = new_record("text_reading", out, width=WIDTH, height=HEIGHT, budget=budget, sizes=list(SIZES))
    record["pictures"] = pictures * len(SAMPLES)
    ways = _ways(budget)
    told: dict[str, list[dict[str, Any]]] = {name: [] for name in ways}
    for signs in drawn(pictures):
        for name, way in ways.items():
            told[name].append(_judged(way, signs))
    record["cases"] = [_case(name, each) for name, each in told.items()]
    columns = [
        {"method": case["name"], "size": f"{size} px", "share": case["share"][str(size)], "ms": case["ms"]}
        for case in record["cases"]
        for size in SIZES
    ]
    say(methods_table("words read", columns, "size", lambda case: f"{case['share']:.0%}"))
    hand_out(record, out)


def drawn(pictures: int) -> Iterator[Signs]:
    """So many pictures with signs on each sample's first frame."""
    for number, clip in enumerate(sample_clips(*SAMPLES)):
        first = read_footage(clip.path, 1).pictures[0]
        background = enlarged(rgb_of((first.luma, first.cb, first.cr)))
        for turn in range(pictures):
            yield signs_on(background, 100 * number + turn)


Way = Callable[[Plane], tuple[str, int]]
"""The text that is read in a picture, and of how many pixels it was given."""


def _ways(budget: int) -> Mapping[str, Way]:
    read, read_area = reader(), reader(_SMALLEST_SIDE)
    return {
        "whole frame": lambda picture: (read(picture), picture.shape[0] * picture.shape[1]),
        "downscaled": lambda picture: _downscaled(picture, budget, read),
        "tokens, strokes": lambda picture: _tokens(picture, budget, "strokes", read_area),
        "tokens, detector": lambda picture: _tokens(picture, budget, "ocr", read_area),
        "detector's lines": _lines(reader(finds=False)),
    }


def _downscaled(picture: Plane, budget: int, read: Read) -> tuple[str, int]:
    """The OCR model enlarges it as it needs."""
    height, width = picture.shape[:2]
    scale = (budget * CELL * CELL / (height * width)) ** 0.5
    size = round(width * scale), round(height * scale)
    return read(np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)), size[0] * size[1]


def _tokens(picture: Plane, budget: int, text: Sources, read: Read) -> tuple[str, int]:
    wanted: dict[str, Any] = {"query": ["text"], "text": text, "budget": budget, "allocation": {"memory": "frame"}}
    with open_stream([picture], engine="cpu", **wanted) as stream:
        (selection,) = stream
    lods = lods_of(selection)
    shown = ReaderPicture([picture.shape[:2]] * 3)
    shown.paint([np.ascontiguousarray(picture[..., part]) for part in range(3)], lods)
    areas = list(areas_of(np.stack(shown.planes, axis=-1), lods))
    return " ".join(map(read, areas)), sum(area.shape[0] * area.shape[1] for area in areas)


def areas_of(picture: Plane, lods: Lods) -> Iterator[Plane]:
    """The boxes around connected cells that tokens of LOD 0 to FINE cover, cut out of ``picture``."""
    fine = ((lods != NOT_SHOWN) & (lods <= FINE)).astype(np.uint8)
    _, _, extents, _ = cv2.connectedComponentsWithStats(fine, connectivity=8)
    for left, top, across, down in (extents[1:, :4] * CELL).tolist():  # the first is the background
        yield picture[top : top + down, left : left + across]


def _lines(read: Read) -> Way:
    find = open_detector(OcrSettings())

    def way(picture: Plane) -> tuple[str, int]:
        lines = [upright(picture, box) for box in find(picture)]
        return " ".join(map(read, lines)), sum(line.shape[0] * line.shape[1] for line in lines)

    return way


def upright(picture: Plane, box: Box) -> Plane:
    """What is in a box, its longer side across."""
    centre, sides, angle = cv2.minAreaRect(box.corners)
    if sides[0] < sides[1]:
        sides, angle = sides[::-1], angle - 90
    angle = (angle + 90) % 180 - 90  # the right way up
    width, height = (max(round(side), 1) for side in sides)
    turn = cv2.getRotationMatrix2D(centre, angle, 1.0)
    shift = np.array([[0, 0, width / 2 - centre[0]], [0, 0, height / 2 - centre[1]]])
    return np.asarray(cv2.warpAffine(picture, turn + shift, (width, height), flags=cv2.INTER_LINEAR), np.uint8)


def _judged(way: Way, signs: Signs) -> dict[str, Any]:
    began = time.process_time()
    text, pixels = way(signs.picture)
    spent = 1000 * (time.process_time() - began)
    counts = {str(size): found(words, text) for size, words in signs.words.items()}
    return {"ms": spent, "pixels": pixels, "read": counts, "words": {str(k): len(v) for k, v in signs.words.items()}}


def _case(name: str, told: list[dict[str, Any]]) -> dict[str, Any]:
    """``share`` of the words that is read, by size and in all; ``ms``: processor time, with choosing tokens."""
    read, words = (
        {str(size): sum(each[key][str(size)] for each in told) for size in SIZES} for key in ("read", "words")
    )
    shares = {size: read[size] / words[size] for size in read}
    return {
        "name": name,
        "share": {**shares, "all": sum(read.values()) / sum(words.values())},
        "words": sum(words.values()),
        "ms": float(np.mean([each["ms"] for each in told])),
        "pixels": float(np.mean([each["pixels"] for each in told])),
        "samples": {key: [each[key] for each in told] for key in ("ms", "pixels", "read")},
    }


if __name__ == "__main__":
    run_module(text_reading)
