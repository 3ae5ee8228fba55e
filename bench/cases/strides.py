"""Whether text is read better from tokens of a stride between the LODs, or of unequal strides. Needs foveate[ocr]:

python -m foveate.bench.cases.strides --out strides.json

An experiment beside the product: whole frames are resized to the budget's samples, whose strides across and down are in
the ratio that is named (box means, as an anisotropic filter takes them; 4:1 keeps the rows of a line of text and gives
up columns), and compared with Foveate's own tokens, whose strides are 1, 2, 4, 8 and 16 alike. The clips are drawn, so
the words are known.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Final

import cv2
import numpy as np
import tyro
from tyro.conf import arg

from foveate.bench.cases.words import measure_words
from foveate.bench.entry import guarded
from foveate.bench.footage import CELL, Footage, Plane
from foveate.bench.peers.methods import ours
from foveate.bench.peers.sent import Method, Sent, of_mask
from foveate.pipeline.painting import Interpolation

_ENLARGED: Final[Mapping[Interpolation, int]] = {"bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
_RATIOS: Final = {"4:1": 4.0, "2:1": 2.0, "1:1": 1.0, "1:2": 0.5, "1:4": 0.25}  # strides across : down


def strides(
    out: Annotated[str | None, arg(metavar="FILE.json", help="The record. Default: standard output.")] = None,
    scenes: Annotated[tuple[str, ...], arg(metavar="NAME ...", help="Scenes of text.")] = ("scroll", "terminal"),
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
    every: Annotated[int, arg(metavar="N", help="Read the last of every N frames.")] = 20,
) -> None:
    """Count the words that an OCR model reads at one stride for the whole frame, and in Foveate's tokens."""
    measure_words("strides", scenes, methods(), budget, frames, every, out)


def methods() -> dict[str, Method]:
    """Every ratio with either enlargement; then Foveate."""
    found: dict[str, Method] = {}
    for interpolation in _ENLARGED:
        for name, ratio in _RATIOS.items():
            found[f"one stride, {name}, {interpolation}"] = partial(one_stride, ratio, interpolation)
        for memory in ("frame", "stream"):
            allocation = {"memory": memory, "interpolation": interpolation}
            found[f"Foveate, {memory}, {interpolation}"] = partial(ours, {"allocation": allocation})
    return found


def one_stride(ratio: float, interpolation: Interpolation, footage: Footage, budget: int) -> Iterator[Sent]:
    """The whole frame resized to at most ``budget`` patches, its stride across ``ratio`` times that down."""
    height, width = footage.pictures[0].luma.shape
    rows, columns = patches_of(height, width, ratio, budget)
    whole = of_mask((), np.ones(footage.grid, np.bool_)).tokens
    for picture in footage.pictures:
        planes = (
            _resized(plane, rows * CELL >> halved, columns * CELL >> halved, interpolation)
            for plane, halved in zip(picture.planes, (0, 1, 1), strict=True)
        )
        yield Sent(tuple(planes), whole, rows * columns / len(whole))


def patches_of(height: int, width: int, ratio: float, budget: int) -> tuple[int, int]:
    """Rows and columns of patches of a picture whose samples are ``ratio`` times as wide as high; at most ``budget``.

    Never more than there are pixels.
    """
    most = -(-height // CELL), -(-width // CELL)
    rows = min(max(1, round(math.sqrt(budget * ratio * height / width))), most[0], budget)
    return rows, min(budget // rows, most[1])


def _resized(plane: Plane, rows: int, columns: int, interpolation: Interpolation) -> Plane:
    """Box means over each sample, enlarged again."""
    size = min(columns, plane.shape[1]), min(rows, plane.shape[0])
    small = cv2.resize(plane, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, plane.shape[::-1], interpolation=_ENLARGED[interpolation]), np.uint8)


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns the exit code."""
    return guarded(lambda: tyro.cli(strides, prog="python -m foveate.bench.cases.strides", args=list(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
