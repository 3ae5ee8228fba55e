"""Patches sampled at real-valued centres and LODs, with gradients by centre, LOD and picture. Needs torch.

The samples are trilinear (Williams 1983, "Pyramidal parametrics"): bilinear in the two levels next to the LOD, linear
between them. At the centre and the LOD of a token they are the token's own pixels.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F  # noqa: N812 # the usual name
from torch import Tensor

from foveate.pipeline.colour import matrix_of
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import TILE, TOP_LEVEL
from foveate.pipeline.selection import PATCH


def picture_levels(pictures: Tensor, top: int = TOP_LEVEL, *, multiple: int = TILE) -> list[Tensor]:
    """Levels 0 to ``top`` of ``pictures``, floats [B, C, H, W] in any units: means of 2x2 samples of the level below.

    The pictures are padded to multiples of ``multiple`` samples by their edge, as the engines do; above that a level's
    last row or column is repeated where their number is odd. Raises ValueError for another shape or type, or a negative
    ``top``.
    """
    if pictures.ndim != 4 or not pictures.is_floating_point():
        raise ValueError(f"pictures must be floats [B, C, H, W], got {pictures.dtype} {list(pictures.shape)}")
    if top < 0:
        raise ValueError(f"top must be at least 0, got {top}")
    levels = [_padded(pictures, multiple)]
    for _ in range(top):
        levels.append(F.avg_pool2d(_padded(levels[-1], 2), 2))
    return levels


def sample_patches(levels: Sequence[Tensor], x: Tensor, y: Tensor, lod: Tensor, side: int = PATCH) -> Tensor:
    """``side`` x ``side`` samples, 2**lod level-0 pixels apart, around each centre: floats [B, K, C, side, side].

    ``levels`` are those of picture_levels; ``x``, ``y`` (level-0 pixels, 0 is the picture's edge) and ``lod`` are
    floats [B, K]. Beyond the picture its edge is repeated. LODs outside 0 to the top level change the distance of the
    samples, which then come from the first or the last level. Raises ValueError for other shapes.

    Where a sample lies on one of the level, as all do of an engine's token, and at whole LODs, the filter has a kink:
    the gradient there is that of one side, towards greater LODs but at the top level.
    """
    _check(levels, x, y, lod)
    top = len(levels) - 1
    spread = (torch.arange(side, dtype=x.dtype, device=x.device) + 0.5 - side / 2) * torch.exp2(lod)[..., None]
    columns, rows = x[..., None] + spread, y[..., None] + spread
    finer = lod.detach().floor().clamp(0, max(top - 1, 0))
    # Of the coarser of the two levels; clamp would have another gradient at its ends.
    share = torch.where(lod < 0, 0, torch.where(lod > top, min(top, 1), lod - finer))
    total = levels[0].new_zeros((*x.shape, levels[0].shape[1], side, side))
    if not x.numel():
        return total
    for level in range(int(finer.min()), min(int(finer.max()) + 1, top) + 1):
        weight = torch.where(finer == level, 1 - share, torch.where(finer == level - 1, share, 0))
        total = total + weight[..., None, None, None] * _bilinear(levels[level], columns, rows, 1 << level)
    return total


def frame_patches(frame: FrameView, x: Tensor, y: Tensor, lod: Tensor) -> Tensor:
    """Patches of a decoded frame, as the CPU engine samples those of its tokens: floats [K, 16, 16, 3].

    They are R'G'B' in 0 to 255 as in ``Selection.patches``, before rounding. ``x``, ``y`` and ``lod`` are floats [K],
    on any device; gradients flow to them. Raises ValueError for other shapes.
    """
    planes = [_sampled(torch.tensor(frame.luma)[None], frame.height, x, y, lod)]
    if frame.chroma is not None:
        chroma = torch.stack([torch.tensor(plane) for plane in frame.chroma])
        planes.append(_sampled(chroma, frame.height, x, y, lod))
    matrix, offsets = (torch.from_numpy(each).to(x) for each in matrix_of(frame.colour))
    samples = torch.cat(planes, dim=1)
    if frame.chroma is None:
        samples = torch.cat([samples, offsets[1:, None, None].expand(len(x), 2, PATCH, PATCH)], dim=1)
    return torch.einsum("rp,kpij->kijr", matrix, samples - offsets[:, None, None]).clamp(0, 255)


def _sampled(planes: Tensor, height: int, x: Tensor, y: Tensor, lod: Tensor) -> Tensor:
    """[K, C, 16, 16] of planes uint8[C, h, w]; those of halved size are enlarged bilinearly for LODs below 1."""
    halved = int(planes.shape[1] != height)
    levels = picture_levels(planes[None].to(x), TOP_LEVEL - halved, multiple=TILE >> halved)
    scale = 1 << halved
    return sample_patches(levels, x[None] / scale, y[None] / scale, lod[None] - halved)[0]


def _bilinear(samples: Tensor, columns: Tensor, rows: Tensor, stride: int) -> Tensor:
    """[B, K, C, side, side]: ``samples`` [B, C, h, w] at ``columns`` x ``rows`` [B, K, side], in units of 1/stride."""
    batch, count, side = columns.shape
    height, width = samples.shape[2:]
    across = (2 * columns / (stride * width) - 1)[:, :, None, :].expand(-1, -1, side, -1)
    down = (2 * rows / (stride * height) - 1)[:, :, :, None].expand(-1, -1, -1, side)
    places = torch.stack([across, down], dim=-1).reshape(batch, count * side, side, 2)
    found = F.grid_sample(samples, places, mode="bilinear", padding_mode="border", align_corners=False)
    return found.reshape(batch, -1, count, side, side).transpose(1, 2)


def _padded(samples: Tensor, multiple: int) -> Tensor:
    """Rows and columns repeated at the bottom and the right, up to multiples of ``multiple``."""
    below, beside = -samples.shape[2] % multiple, -samples.shape[3] % multiple
    return F.pad(samples, (0, beside, 0, below), mode="replicate") if below or beside else samples


def _check(levels: Sequence[Tensor], x: Tensor, y: Tensor, lod: Tensor) -> None:
    if not levels:
        raise ValueError("there must be at least one level")
    batch = len(levels[0])
    if x.ndim != 2 or len(x) != batch or not x.shape == y.shape == lod.shape:
        shapes = ", ".join(str(list(each.shape)) for each in (x, y, lod))
        raise ValueError(f"x, y and lod must be [{batch}, K] for {batch} pictures, got {shapes}")
