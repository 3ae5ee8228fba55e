"""A stand-in for an image-text model whose embeddings follow what each part shows: colour, contrast and direction.

It understands no language. It is deterministic, fast and strictly local, so it measures how well embeddings are warped,
not how well anything is recognised.
"""

from collections.abc import Sequence
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.encoders.image_text import Picture, Vectors, unit

_PART: Final = 16  # pixels
_DIMENSION: Final = 64
_CONTRAST_GAIN: Final = 4.0  # contrasts of natural pictures are about a quarter of their brightness
_SEED: Final = 11


class PatchEncoder:
    """See foveate.pipeline.encoders.image_text.ImageTextEncoder. Parts have 16 x 16 pixels of the picture as it is."""

    id: Final = "patches 1"
    dimension: Final = _DIMENSION
    resolution: Final = 224
    sharpness: Final = 10.0

    def __init__(self) -> None:
        generator = np.random.default_rng(_SEED)
        self._mix = generator.normal(size=(_FEATURES, _DIMENSION)).astype(np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Fixed vectors without a meaning, one per text."""
        seeds = [int.from_bytes(text.encode()[:8].ljust(8, b"\0"), "little") for text in texts]
        return unit(np.stack([np.random.default_rng(seed).normal(size=_DIMENSION) for seed in seeds]))

    def cuts(self, text: str) -> bool:
        """Never."""
        return False

    def encode_image(self, rgb: Picture, longest: int) -> Vectors:
        """``longest`` is not looked at: parts have their own size."""
        return unit(_features(rgb) @ self._mix)


_FEATURES: Final = 9


def _features(rgb: Picture) -> NDArray[np.float32]:
    """Mean L*a*b*, its deviations, and mean gradients across, down and at all, of each part: float32[r, c, 9]."""
    rows, columns = (-(-side // _PART) for side in rgb.shape[:2])
    padded = cv2.copyMakeBorder(
        rgb, 0, rows * _PART - rgb.shape[0], 0, columns * _PART - rgb.shape[1], cv2.BORDER_REPLICATE
    )
    lab = np.asarray(cv2.cvtColor(padded.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab), np.float32) / 50
    light = np.ascontiguousarray(lab[..., 0])
    across, down = (np.abs(cv2.Sobel(light, cv2.CV_32F, *step, scale=0.25)) for step in ((1, 0), (0, 1)))
    mean, square = _means(lab), _means(lab * lab)
    deviation = np.sqrt(np.maximum(square - mean * mean, 0))
    edges = _means(np.stack([across, down, np.hypot(across, down)], -1).astype(np.float32))
    middle = mean - np.array([1, 0, 0], np.float32)
    return np.concatenate([middle, _CONTRAST_GAIN * deviation, _CONTRAST_GAIN * edges], -1)


def _means(values: NDArray[np.floating]) -> NDArray[np.float32]:
    """Of each part: float32[h, w, n] -> [h / 16, w / 16, n]."""
    height, width, count = values.shape
    blocks = values.reshape(height // _PART, _PART, width // _PART, _PART, count)
    return np.asarray(blocks.mean(axis=(1, 3)), np.float32)
