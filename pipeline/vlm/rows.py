"""Patches as rows of numbers, as models' image processors make them of pictures."""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray


def resampled(patches: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Patches of another size: uint8[K, P, P, 3] -> [K, side, side, 3], each by its own samples alone (area means)."""
    if len(patches) == 0 or patches.shape[1] == side:
        return patches if patches.shape[1] == side else np.empty((0, side, side, 3), np.uint8)
    return np.stack([cv2.resize(patch, (side, side), interpolation=cv2.INTER_AREA) for patch in patches])


def channel_rows(
    patches: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float], frames: int = 1
) -> NDArray[np.float32]:
    """Rows in the order channel, frame, row, column: uint8[K, P, P, 3] -> float32[K, 3*frames*P*P].

    As the processors of the Qwen families make them, of one picture shown ``frames`` times: values in [0, 1], less the
    ``mean``, over the ``std`` of each channel.
    """
    count, side, _, channels = patches.shape
    shown = _normalised(patches, mean, std).transpose(0, 3, 1, 2)[:, :, None]
    return shown.repeat(frames, axis=2).reshape(count, channels * frames * side * side)


def pixel_rows(patches: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> NDArray[np.float32]:
    """Rows in the order row, column, channel: uint8[K, P, P, 3] -> float32[K, P*P*3], normalised as ``channel_rows``.

    As the processors of SigLIP 2 and Gemma 4 make them.
    """
    return _normalised(patches, mean, std).reshape(len(patches), int(np.prod(patches.shape[1:])))


def _normalised(patches: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> NDArray[np.float32]:
    scaled = patches.astype(np.float32)
    if not np.any(mean) and np.all(np.equal(std, 1)):  # as Gemma 4's, which does not normalise, but only scales
        return scaled * np.float32(1 / 255)
    # Mean and deviation are scaled to 0..255 first, as the processors do to save a pass; rounding follows theirs.
    return (scaled - np.asarray(mean, np.float32) * np.float32(255)) / (np.asarray(std, np.float32) * np.float32(255))
