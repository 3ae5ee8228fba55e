"""An experiment: are tokens between the LODs worthwhile? By words read by OCR, which needs foveate[ocr], or by PSNR:

python -m foveate.bench.cases.strides --out strides.json
python -m foveate.bench.cases.strides --psnr --out strides_psnr.json

The product's tokens have strides of 1, 2, 4, 8 and 16, the same across and down. They are compared with whole frames
resized to the budget's samples at one stride (box means; across and down in the named ratio), and with trees whose
tokens may be wider than high or higher than wide, or lie on cells of other sizes: see peers/between.py. The texts are
drawn, so the words are known; another seed draws others.
"""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

import cv2
import numpy as np
from tyro.conf import FlagCreatePairsOff, arg

from foveate.bench.cases.quality import clip_quality
from foveate.bench.cases.words import measure_words
from foveate.bench.clips.footage import CELL, Footage, Plane
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.peers.between import between
from foveate.bench.peers.methods import ours
from foveate.bench.peers.sent import Method, Sent, of_mask
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.scenes.text import SEED

_RATIOS: Final = {"2:1": 2.0, "1:1": 1.0, "1:2": 0.5}  # strides across : down
_SCENES: Final = ("scroll", "terminal", "slides", "street")
_CLIPS: Final = ("pedestrians", "bunny")


def strides(
    out: Out = None,
    scenes: Annotated[tuple[str, ...], arg(metavar="NAME ...", help="Scenes of text.")] = _SCENES,
    seed: Annotated[int, arg(metavar="N", help="What the texts are drawn with.")] = SEED,
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 30,
    every: Annotated[int, arg(metavar="N", help="Read the last of every N frames.")] = 30,
    psnr: FlagCreatePairsOff[Annotated[bool, arg(help="Take the PSNR of two sample clips instead.")]] = False,
) -> None:
    """Count the words that an OCR model reads in tokens between the LODs, or take their PSNR."""
    if not psnr:
        measure_words("strides", scenes, methods(), budget, frames, every, out, seed)
        return
    check_least(1, budget=budget, frames=frames)
    record = new_record("strides", out, budget=budget)
    for clip in sample_clips(*_CLIPS):
        record["cases"] += clip_quality(clip, methods(), budget, frames)
    say(psnr_table(record))
    hand_out(record, out)


def methods() -> dict[str, Method]:
    """Whole frames at one stride, Foveate, and trees."""
    found: dict[str, Method] = {f"one stride, {name}": partial(one_stride, ratio) for name, ratio in _RATIOS.items()}
    for memory in ("frame", "stream"):
        found[f"Foveate, {memory}"] = partial(ours, {"allocation": {"memory": memory}})
    return found | between()


def psnr_table(record: Mapping[str, Any]) -> str:
    """One row per method, one column per sample clip: mean PSNR of luma, and that of the worst frame, in dB."""
    return methods_table("PSNR, dB", record["cases"], "clip", _psnr) + "\n"


def _psnr(case: Mapping[str, Any]) -> str:
    return f"{case['psnr_luma']:.1f} ({case['psnr_luma_least']:.1f})"


def one_stride(ratio: float, footage: Footage, budget: int) -> Iterator[Sent]:
    """The whole frame resized to at most ``budget`` patches, its stride across ``ratio`` times that down."""
    height, width = footage.pictures[0].luma.shape
    rows, columns = patches_of(height, width, ratio, budget)
    whole = of_mask((), np.ones(footage.grid, np.bool_)).tokens
    for picture in footage.pictures:
        planes = (
            _resized(plane, rows * CELL >> halved, columns * CELL >> halved)
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


def _resized(plane: Plane, rows: int, columns: int) -> Plane:
    """Box means over each sample, enlarged again bilinearly."""
    size = min(columns, plane.shape[1]), min(rows, plane.shape[0])
    small = cv2.resize(plane, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.resize(small, plane.shape[::-1], interpolation=cv2.INTER_LINEAR), np.uint8)


if __name__ == "__main__":
    run_module(strides)
