"""The interface of image-text encoders, independent of the model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Picture = NDArray[np.uint8]


class ImageTextEncoder(Protocol):
    """Maps pictures and texts into one space of unit vectors, whose similarity is the dot product. Thread-safe."""

    @property
    def id(self) -> str:
        """Identifies architecture, weights and preprocessing: encoders with one id give the same vectors."""

    @property
    def dimension(self) -> int:
        """D, the length of a vector."""

    @property
    def resolution(self) -> int:
        """Pixels along the side of the square pictures that the model was trained on."""

    @property
    def sharpness(self) -> float:
        """The logit scale: what the model multiplies dot products by before its softmax."""

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """One unit vector per text, float32[n, D]."""

    def cuts(self, text: str) -> bool:
        """True if ``text`` is longer than the model reads."""

    def encode_image(self, rgb: Picture, longest: int) -> Vectors:
        """Unit vectors float32[rows, columns, D] of the patches of a picture, uint8[H, W, 3].

        The picture is scaled, its aspect kept, until its longer side has about ``longest`` pixels.
        """


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """``vectors`` [..., D] normalised to length 1; zeros stay zeros."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, np.finfo(np.float32).tiny), np.float32)


def picture_vector(encoder: ImageTextEncoder, rgb: Picture) -> Vectors:
    """One unit vector, float32[D], for a whole picture: the mean of its patches, comparable with them."""
    return unit(encoder.encode_image(rgb, encoder.resolution).mean(axis=(0, 1)))
