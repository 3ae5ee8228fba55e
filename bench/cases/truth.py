"""The reader's picture against ground truth, on generated clips: coverage, delays, stale tokens, churn when still.

python -m foveate.bench.cases.truth --out truth.json

An interrupted run resumes from its file.
"""

import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import Clip
from foveate.bench.clips.encoding import LOSSLESS, encode, grey_frame
from foveate.bench.clips.footage import CELL, Footage, Picture, read_footage
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.peers.methods import METHODS
from foveate.bench.peers.sent import Method, Sent
from foveate.bench.reader.painting import NOT_SHOWN, ReaderPicture, level_enlarged, lods_at
from foveate.bench.records.jobs import Job, run_benchmark
from foveate.bench.records.table import markdown
from foveate.bench.records.writing import method_cases
from foveate.bench.scenes.moving import SCENES, Box, Moment

FINE: Final = 1
"""The coarsest LOD that counts as fine."""
STALE: Final = 8.0
"""Mean error of a cell, in grey levels, above which its token is stale: well above the noise of these clips."""
_RATE: Final = Fraction(25)
_SETTLED: Final = 15  # frames until a still scene has settled
_CHOSEN: Final = (
    "downscale",
    "EVS, causal",
    "STC",
    "conditional replenishment",
    "AutoGaze-like",
    "Foveate, frame",
    "Foveate, stream",
)


def truth(
    out: Out = None,
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame, of 960 cells.")] = 96,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
) -> None:
    """Compare the reader's picture with ground truth, on generated clips."""
    check_least(1, budget=budget, frames=frames)
    check_folders(out=out)
    plan = {"budget": budget, "frames": frames, "fine": FINE, "stale": STALE}
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        measure = partial(scene_truth, folder=Path(folder), budget=budget, frames=frames)
        jobs = [Job(name, partial(measure, name)) for name in SCENES]
        run_benchmark("truth", plan, jobs, out, truth_table)


def scene_truth(name: str, folder: Path, budget: int, frames: int) -> list[dict[str, Any]]:
    """One case per method on one clip."""
    how = f"generated: {' '.join((SCENES[name].__doc__ or '').split())} Lossless x264."
    clip, moments = Clip(name, folder / f"{name}.mp4", how), list(SCENES[name](frames))
    encode(clip.path, (grey_frame(moment.luma) for moment in moments), _RATE, LOSSLESS)
    footage = read_footage(clip.path, frames)
    found = {method: method_truth(METHODS[method], footage, moments, budget) for method in _CHOSEN}
    return method_cases(clip, len(footage.pictures), found)


def method_truth(method: Method, footage: Footage, moments: Sequence[Moment], budget: int) -> dict[str, Any]:
    """``coverage``: share of the things' cells shown finely and not stale, mean over things and frames; None without.

    ``first_fine``: frames until a new thing has a fine token, mean over the things, those that never have one counting
    until they leave. ``stale``: share of the cells whose token is stale, mean, most and last. ``rest``: of the frames
    from the 15th on, tokens per frame, and the share of them that the frame before does not have.
    """
    observer = _Observer(footage)
    for picture, moment, sent in zip(footage.pictures, moments, method(footage, budget), strict=True):
        observer.see(picture, moment, sent)
    return observer.figures()


class _Observer:
    """Follows one method through a clip."""

    def __init__(self, footage: Footage) -> None:
        self._reader, self._grid = ReaderPicture(footage.shapes), footage.grid
        self._lods = np.full(footage.grid, NOT_SHOWN, np.int8)
        self._covered: list[float] = []
        self._stale: list[float] = []
        self._tokens: list[set[tuple[int, ...]]] = []
        self._sizes: list[int] = []
        self._waiting: dict[int, int] = {}  # frames so far, of the things without a fine token
        self._waited: dict[int, int] = {}

    def see(self, picture: Picture, moment: Moment, sent: Sent) -> None:
        """Take one frame."""
        lods = lods_at(sent.tokens, self._grid)
        self._reader.paint(sent.planes, lods, sent.interpolation)
        coarser = round(sent.coarser)
        new = np.where(lods == NOT_SHOWN, NOT_SHOWN, lods + coarser)
        self._lods = np.where(lods == NOT_SHOWN, self._lods, new)
        stale = stale_cells(self._reader, picture, self._lods, coarser)
        good = (self._lods != NOT_SHOWN) & (self._lods <= FINE) & ~stale
        self._covered += [float(good[cells(box)].mean()) for box in moment.boxes]
        self._stale.append(float(stale.mean()))
        self._sizes.append(sent.size)
        self._tokens.append({tuple(token) for token in sent.tokens.tolist()})
        self._wait(moment.boxes, (new != NOT_SHOWN) & (new <= FINE))

    def _wait(self, boxes: Sequence[Box], fine: NDArray[np.bool_]) -> None:
        for box in boxes:
            if box.thing in self._waited:
                continue
            if fine[cells(box)].any():
                self._waited[box.thing] = self._waiting.pop(box.thing, 0)
            else:
                self._waiting[box.thing] = self._waiting.get(box.thing, 0) + 1

    def figures(self) -> dict[str, Any]:
        delays = [*self._waited.values(), *self._waiting.values()]
        pairs = list(zip(self._tokens, self._tokens[1:], strict=False))[_SETTLED - 1 :]
        return {
            "coverage": fmean(self._covered) if self._covered else None,
            "first_fine": fmean(delays) if delays else None,
            "never_fine": len(self._waiting),
            "stale": fmean(self._stale),
            "stale_most": max(self._stale),
            "stale_last": self._stale[-1],
            "rest_tokens": fmean(self._sizes[_SETTLED:] or self._sizes),
            "rest_churn": fmean([len(now - before) / len(now) if now else 0.0 for before, now in pairs] or [0.0]),
            "samples": {"stale": self._stale, "tokens": self._sizes},
        }


def cells(box: Box) -> tuple[slice, slice]:
    """The cells that a box touches."""
    return slice(box.top // CELL, -(-box.bottom // CELL)), slice(box.left // CELL, -(-box.right // CELL))


def stale_cells(reader: ReaderPicture, picture: Picture, lods: NDArray[np.integer], coarser: int) -> NDArray[np.bool_]:
    """bool[rows, columns]: cells that a new token of the same LOD would show differently, and cells without a token."""
    stale = lods == NOT_SHOWN
    for lod in np.unique(lods[~stale]).tolist():
        now = level_enlarged(picture.luma, lod)
        off = cell_differences(reader.planes[0], now, *lods.shape)
        stale |= (lods == lod) & (off > STALE * (2 if coarser else 1))  # a resized picture is another enlargement
    return stale


def cell_differences(one: NDArray[np.uint8], other: NDArray[np.uint8], rows: int, columns: int) -> NDArray[np.float64]:
    """Mean absolute difference of each cell; what lies outside the picture counts as the same."""
    off = np.abs(one.astype(np.int16) - other)
    padded = np.pad(off, ((0, rows * CELL - off.shape[0]), (0, columns * CELL - off.shape[1])))
    return padded.reshape(rows, CELL, columns, CELL).mean(axis=(1, 3))


def truth_table(record: Mapping[str, Any]) -> str:
    """One row per method, one column per figure of interest."""
    cases = {(case["clip"], case["method"]): case for case in record["cases"]}
    columns = [column for column in _COLUMNS if any(column[0] == clip for clip, _ in cases)]
    rows = (
        (method, *(_shown(cases[clip, method], key, scale) for clip, key, _, scale in columns)) for method in _CHOSEN
    )
    return markdown(("method", *(label for *_, label, _ in columns)), rows) + "\n"


def _shown(case: Mapping[str, Any], key: str, scale: int) -> str:
    return "" if case[key] is None else f"{scale * case[key]:.1f}"


_COLUMNS: Final = (
    ("speeds", "coverage", "moving things covered, %", 100),
    ("arrivals", "coverage", "new things covered, %", 100),
    ("arrivals", "first_fine", "frames until a new thing is fine", 1),
    ("occlusion", "coverage", "covered around an occlusion, %", 100),
    ("cut", "stale", "stale: cut, %", 100),
    ("fade", "stale", "fade, %", 100),
    ("fade", "stale_last", "after the fade, %", 100),
    ("flash", "stale_last", "after the flash, %", 100),
    ("drift", "stale", "drift, %", 100),
    ("rest", "rest_tokens", "tokens at rest", 1),
    ("rest", "rest_churn", "churn at rest, %", 100),
)


if __name__ == "__main__":
    run_module(truth)
