"""What mipmap.cu computes, in NumPy: each level from the one below it, by area (Guthe & Heckbert 2005)."""

import numpy as np
from numpy.typing import NDArray


def halving(size: int) -> NDArray[np.float32]:
    """Weights float32[coarse, size] along one axis: how much of a coarse texel's width lies over each fine one."""
    coarse = max(1, size // 2)
    edges = np.arange(coarse + 1) * size / coarse  # of the coarse texels, in fine ones
    fine = np.arange(size)
    overlap = np.minimum(edges[1:, None], fine + 1) - np.maximum(edges[:-1, None], fine)
    return (np.maximum(overlap, 0) * coarse / size).astype(np.float32)


def next_level(texels: NDArray[np.float16]) -> NDArray[np.float16]:
    """[rows, columns, C] of the level above, which has half as many of both, rounded down, but at least one."""
    down, across = halving(texels.shape[0]), halving(texels.shape[1])
    return np.einsum("iy,yxc,jx->ijc", down, texels.astype(np.float32), across, optimize=True).astype(np.float16)
