"""Rows of patches, computed on the device of the patches, such as a GPU; the same numbers as ``rows``."""

from collections.abc import Sequence

import torch


def channel_rows(patches: torch.Tensor, mean: Sequence[float], std: Sequence[float], frames: int = 1) -> torch.Tensor:
    """As ``rows.channel_rows``: uint8[K, P, P, 3] -> float32[K, 3*frames*P*P], on the patches' device."""
    return raw_rows(_normalised(patches, mean, std), frames)


def raw_rows(patches: torch.Tensor, frames: int = 1) -> torch.Tensor:
    """The same rows of values as they are: [K, P, P, 3] -> [K, 3*frames*P*P]."""
    count, side, _, channels = patches.shape
    shown = patches.permute(0, 3, 1, 2)[:, :, None]
    return shown.expand(count, channels, frames, side, side).reshape(count, channels * frames * side * side)


def pixel_rows(patches: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    """As ``rows.pixel_rows``: uint8[K, P, P, 3] -> float32[K, P*P*3], on the patches' device."""
    return _normalised(patches, mean, std).flatten(1)


def _normalised(patches: torch.Tensor, mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
    shift, scale = (torch.tensor(each, dtype=torch.float32, device=patches.device) * 255 for each in (mean, std))
    return (patches.float() - shift) / scale
