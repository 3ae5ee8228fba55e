"""Ways to choose cells of one frame by itself. Each returns one bool[rows, columns] per frame."""

import numpy as np

from foveate.bench.clips.footage import Footage
from foveate.bench.peers.cells import Mask, highest
from foveate.pipeline.stream import open_stream

_SEED = 0


def uniform(footage: Footage, budget: int) -> list[Mask]:
    """Every (n/K)-th cell of the grid, the same in each frame."""
    rows, columns = footage.grid
    kept = min(budget, rows * columns)
    mask = np.zeros(rows * columns, np.bool_)
    mask[np.arange(kept) * (rows * columns) // kept] = True
    return [mask.reshape(rows, columns)] * len(footage.pictures)


def random(footage: Footage, budget: int) -> list[Mask]:
    """K cells drawn afresh per frame, seeded."""
    generator = np.random.default_rng(_SEED)
    return [highest(generator.random(picture.grid), budget) for picture in footage.pictures]


def saliency(footage: Footage, budget: int) -> list[Mask]:
    """Foveate's saliency channel alone, the K highest cells."""
    rows, columns = footage.grid
    with open_stream(footage.path, maps=("saliency",), source={"frames": len(footage.pictures)}) as stream:
        maps = [selection.maps["saliency"][:rows, :columns] for selection in stream]
    return [highest(values, budget) for values in maps]
