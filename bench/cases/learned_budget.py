"""An experiment: a tiny scorer learns to spend the budget, end to end by what a reader sees. Needs torch:

python -m foveate.bench.cases.learned_budget --out learned_budget.json

`soft_top_k` shares the budget out among the cells. A share w of a token for a cell is a LOD of -log2(w) / 2, since a
token of LOD l covers 4**l cells; there each cell is sampled trilinearly, and the squared error of the result goes back
through LODs and shares to the scorer. It is trained on two sample clips and measured on a third. There its shares are
rounded to a quadtree: whole tokens within the budget, painted like those of the other strategies.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.clips.footage import CELL, Footage, Plane, read_footage
from foveate.bench.clips.samples import SAMPLES, sample_clips
from foveate.bench.entry import Out, check_least, needed, run_module
from foveate.bench.peers.methods import ours
from foveate.bench.peers.sent import at_once
from foveate.bench.reader.painting import ReaderPicture, decibels, lods_at, mean_square
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.pipeline.cascade.soft import soft_top_k
from foveate.pipeline.geometry import TILE, TOP_LEVEL

with needed(__name__):
    import torch
    import torch.nn.functional as F  # noqa: N812 # the usual name
    from torch import Tensor, nn

    from foveate.pipeline.cascade.soft_torch import soft_top_k_tensor
    from foveate.pipeline.learned import picture_levels, sample_patches

_HELD_OUT: Final = ("pedestrians", "bunny")
_CROP: Final = 128  # pixels
_CROPS: Final = 4
_LEAST: Final = 4.0**-TOP_LEVEL  # tokens per cell at the coarsest LOD
_DENSITIES: Final = (0.05, 0.2)  # tokens per cell in training
_SEED: Final = 1


def learned_budget(
    out: Out = None,
    steps: Annotated[int, arg(metavar="N", help="Steps of training.")] = 150,
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 10,
) -> None:
    """Train a scorer on two clips, and take the PSNR of what it chooses in a third."""
    check_least(1, steps=steps, budget=budget, frames=frames)
    record = new_record("learned_budget", out, torch=str(torch.__version__), steps=steps, budget=budget)
    footage = {clip.name: read_footage(clip.path, frames) for clip in sample_clips(*SAMPLES)}
    for clip in sample_clips(*_HELD_OUT):
        lumas = [picture.luma for name, each in footage.items() if name != clip.name for picture in each.pictures]
        scorer = trained(lumas, steps)
        for method, samples in psnr(scorer, footage[clip.name], budget).items():
            say(f"{clip.name}, {method}: {fmean(samples):.2f} dB")
            case = {"name": f"{clip.name}, {method}", "psnr_luma": fmean(samples), "samples": {"psnr_luma": samples}}
            record["cases"].append(case | clip_record(clip, frames))
    hand_out(record, out)


class Scorer(nn.Module):  # type: ignore[misc] # torch is not looked into
    """One value per cell, by what each level adds in it: a 1x1 convolution with one hidden layer, 113 weights."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(TOP_LEVEL + 1, 16, 1), nn.Tanh(), nn.Conv2d(16, 1, 1))

    def forward(self, levels: Sequence[Tensor]) -> Tensor:
        """Values [B, rows, columns] of the cells of ``levels``, 0 to 4."""
        return self.layers(features(levels))[:, 0]


def features(levels: Sequence[Tensor]) -> Tensor:
    """Of each cell, log10 of the mean square of what levels 0 to 3 add to the next, and its mean: [B, 5, r, c]."""
    found = []
    for level in range(TOP_LEVEL):
        enlarged = F.interpolate(levels[level + 1], scale_factor=2, mode="bilinear", align_corners=False)
        added = F.avg_pool2d((levels[level] - enlarged) ** 2, CELL >> level)
        found.append(torch.log10(added + 1e-6) / 2 + 2)
    return torch.cat([*found, levels[TOP_LEVEL]], dim=1)


def trained(lumas: Sequence[Plane], steps: int) -> Scorer:
    """A scorer after so many steps of Adam on the logarithm of the squared error in random crops."""
    torch.manual_seed(_SEED)
    generator = np.random.default_rng(_SEED)
    scorer = Scorer()
    optimiser = torch.optim.Adam(scorer.parameters(), lr=2e-2)
    for _ in range(steps):
        crops = torch.from_numpy(np.stack([_crop(generator, lumas) for _ in range(_CROPS)]))[:, None].float() / 255
        levels = picture_levels(crops)
        values = scorer(levels)
        tokens = round(values.numel() * generator.uniform(*_DENSITIES))
        shares = _LEAST + (1 - _LEAST) * soft_top_k_tensor(values.flatten(), tokens, 1.0).reshape(values.shape)
        loss = (shown(levels, shares) - crops).square().mean().log()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return scorer


def _crop(generator: np.random.Generator, lumas: Sequence[Plane]) -> Plane:
    luma = lumas[int(generator.integers(len(lumas)))]
    top, left = (generator.integers(0, (length - _CROP) // CELL + 1) * CELL for length in luma.shape)
    return luma[top : top + _CROP, left : left + _CROP]


def shown(levels: Sequence[Tensor], shares: Tensor) -> Tensor:
    """Pictures [B, 1, H, W] of which each cell is sampled, pixel by pixel, at the LOD of its share of a token."""
    batch, _, height, width = levels[0].shape
    lod = -0.5 * torch.log2(shares).repeat_interleave(CELL, 1).repeat_interleave(CELL, 2)
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    x, y = (each.flatten().expand(batch, -1) for each in (x, y))
    return sample_patches(levels, x, y, lod.flatten(1), side=1).reshape(batch, 1, height, width)


def psnr(scorer: Scorer, footage: Footage, budget: int) -> dict[str, list[float]]:
    """PSNR of each frame by the scorer, by an untrained one, and by the strategies `soft` and the default."""
    torch.manual_seed(_SEED)
    found: dict[str, list[float]] = {}
    for name, each in (("learned", scorer), ("untrained", Scorer())):
        found[name] = []
        for picture in footage.pictures:
            values = cell_values(each, picture.luma)[: footage.grid[0], : footage.grid[1]]
            reader = ReaderPicture([picture.luma.shape])
            reader.paint([picture.luma], lods_at(tokens(values, budget), footage.grid))
            found[name].append(decibels(mean_square(reader.planes[0], picture.luma)))
    for name in ("soft", "rate_distortion"):
        method = partial(ours, {"allocation": {"strategy": name, "memory": "frame"}})
        pairs = zip(footage.pictures, at_once(method(footage, budget), footage), strict=True)
        found[name] = [decibels(mean_square(seen.planes[0], picture.luma)) for picture, seen in pairs]
    return found


def cell_values(scorer: Scorer, luma: Plane) -> NDArray[np.float64]:
    """The scorer's values of all cells of a picture, the padding's included."""
    with torch.no_grad():
        levels = picture_levels(torch.from_numpy(luma)[None, None].float() / 255, multiple=TILE)
        return np.asarray(scorer(levels)[0].numpy(), np.float64)


def tokens(values: NDArray[np.float64], budget: int) -> NDArray[np.int32]:
    """Whole tokens by the cells' ``values``, at most ``budget``: int32[K, 3] as bench.reader.painting paints them.

    The shares are those of training. A square of cells is split in four where its shares, times one factor, are more
    than two tokens, halfway between one and the four that splitting makes, in logarithms. The factor is the greatest at
    which the tokens fit, by bisection.
    """
    count = min(budget, values.size)
    shares = _LEAST + (1 - _LEAST) * soft_top_k(values.ravel(), count, 1.0).reshape(values.shape)
    low, high = 0.0, 4.0 ** (TOP_LEVEL + 1)
    best = list(_leaves(shares, low))
    for _ in range(40):
        factor = (low + high) / 2
        found = list(_leaves(shares, factor))
        if len(found) <= budget:
            low, best = factor, found
        else:
            high = factor
    return np.array(sorted(best, key=lambda token: (-token[2], token[0], token[1])), np.int32)


def _leaves(shares: NDArray[np.float64], factor: float) -> Iterator[tuple[int, int, int]]:
    side = 1 << TOP_LEVEL
    rows, columns = shares.shape
    waiting = [(row, column, TOP_LEVEL) for row in range(0, rows, side) for column in range(0, columns, side)]
    while waiting:
        row, column, lod = waiting.pop()
        side = 1 << lod
        if lod == 0 or factor * shares[row : row + side, column : column + side].sum() <= 2:
            yield row, column, lod
            continue
        half = side // 2
        parts = [(row + down, column + across) for down in (0, half) for across in (0, half)]
        waiting += [(top, left, lod - 1) for top, left in parts if top < rows and left < columns]


if __name__ == "__main__":
    run_module(learned_budget)
