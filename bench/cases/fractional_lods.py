"""An experiment: what a picture gains from tokens at one LOD between the levels, against whole LODs and the quadtree.

python -m foveate.bench.cases.fractional_lods --out fractional_lods.json

First frames are covered evenly by tokens, sampled trilinearly (foveate.pipeline.learned) at the finest LOD that the
budget allows, and at the finest whole one, and enlarged bilinearly. The quadtree is the strategy rate_distortion, as in
bench.cases.quality. Needs torch.
"""

from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.cases.quality import clip_quality
from foveate.bench.clips.footage import read_footage
from foveate.bench.clips.samples import SAMPLES, clips_of
from foveate.bench.entry import Out, run_module
from foveate.bench.peers.methods import STRATEGIES
from foveate.bench.reader.painting import decibels
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.pipeline.selection import PATCH

_BUDGETS: Final = (64, 128, 273, 512)
_STEPS: Final = 256  # to a level: as finely as texture hardware weighs two of them
_COARSEST: Final = 16
_QUADTREE: Final = "rate_distortion, frame"


def fractional_lods(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: the samples.")] = (),
    out: Out = None,
) -> None:
    """Compare the PSNR of first frames by budget."""
    record = new_record("fractional_lods", out)
    clips = clips_of(files, *SAMPLES)
    record["clips"] = [clip_record(clip, 1) for clip in clips]
    record["cases"] = [case for clip in clips for budget in _BUDGETS for case in _cases(clip, budget)]
    for case in record["cases"]:
        say(f"{case['name']}: {case['tokens']:.0f} tokens, {case['psnr_luma']:.2f} dB")
    hand_out(record, out)


def _cases(clip: Clip, budget: int) -> list[dict[str, Any]]:
    luma = read_footage(clip.path, 1).pictures[0].luma
    cases = []
    for name, whole in (("between levels", False), ("whole levels", True)):
        lod, (rows, columns) = finest(luma.shape, budget, whole)
        psnr = decibels(float(np.mean((covered(luma, lod, rows, columns) - luma) ** 2)))
        named = {"name": f"{clip.name}, {budget}, {name}", "lod": lod, "tokens": rows * columns}
        cases.append(named | {"psnr_luma": psnr})
    (tree,) = clip_quality(clip, {_QUADTREE: STRATEGIES[_QUADTREE]}, budget, 1)
    about = {"name": f"{clip.name}, {budget}, quadtree", "tokens": tree["tokens_per_frame"]}
    return [*cases, about | {"psnr_luma": tree["psnr_luma"]}]


def finest(shape: tuple[int, ...], budget: int, whole: bool) -> tuple[float, tuple[int, int]]:
    """The finest LOD at which at most ``budget`` tokens cover ``shape``, and their rows and columns."""
    for part in range(0, _COARSEST * _STEPS, _STEPS if whole else 1):
        lod = part / _STEPS
        rows, columns = (int(np.ceil(size / (PATCH * 2**lod))) for size in shape)
        if rows * columns <= budget:
            return lod, (rows, columns)
    raise RedCheckError(f"no LOD covers {shape} with {budget} tokens")


def covered(luma: NDArray[np.uint8], lod: float, rows: int, columns: int) -> NDArray[np.float64]:
    """``luma`` as a reader sees it of ``rows`` x ``columns`` tokens of one ``lod``, perhaps between two levels."""
    import torch

    from foveate.pipeline.learned import picture_levels, sample_patches

    levels = picture_levels(torch.from_numpy(luma.astype(np.float64))[None, None])
    row, column = (np.indices((rows, columns)).reshape(2, -1) + 0.5) * PATCH * 2**lod
    x, y, lods = (torch.from_numpy(each)[None] for each in (column, row, np.full(row.shape, lod)))
    patches = sample_patches(levels, x, y, lods)[0, :, 0].numpy()
    samples = patches.reshape(rows, columns, PATCH, PATCH).swapaxes(1, 2).reshape(rows * PATCH, columns * PATCH)
    return enlarged(samples, luma.shape, 2**lod)


def enlarged(samples: NDArray[np.floating], shape: tuple[int, ...], scale: float) -> NDArray[np.float64]:
    """``samples`` enlarged bilinearly, their centres aligned, and cut to ``shape``."""
    grown = samples.astype(np.float64)
    for axis in (0, 1):
        at = np.clip((np.arange(shape[axis]) + 0.5) / scale - 0.5, 0, samples.shape[axis] - 1)
        low = at.astype(np.intp)
        high = np.minimum(low + 1, samples.shape[axis] - 1)
        part = (at - low).reshape((-1, 1) if axis == 0 else (1, -1))
        grown = np.take(grown, low, axis) * (1 - part) + np.take(grown, high, axis) * part
    return grown


if __name__ == "__main__":
    run_module(fractional_lods)
