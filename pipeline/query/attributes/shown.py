"""What a picture that serves as an example asks for: its colours."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.query.attributes.colours import NAMES, named
from foveate.pipeline.query.attributes.vocabulary import VOCABULARY, Read
from foveate.pipeline.query.example import example

_DOMINANT: Final = 0.2  # share of the picture that a colour must have
_SIDE: Final = 64  # samples along a side are enough to know that


def shown_in(path: str) -> Read:
    """One term: the share of a cell's samples that have any of the example's dominant colours. Raises SourceError."""
    terms = [VOCABULARY[NAMES[index]][0].term() for index in dominant(example(path))]
    weights = np.stack([weights for weights, _ in terms]).sum(axis=0)
    return Read([(np.asarray(weights, np.float32), terms[0][1])], [])


def dominant(rgb: NDArray[np.uint8]) -> list[int]:
    """Indices in NAMES of the colours of a fifth of the picture uint8[H, W, 3] or more; if there is none, of the most.

    The picture is looked at in at most 64 x 64 samples, which are means.
    """
    height, width = (min(side, _SIDE) for side in rgb.shape[:2])
    small = cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA)
    lab = cv2.cvtColor(small.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab)
    shares = np.bincount(named(np.asarray(lab, np.float32).reshape(-1, 3)), minlength=len(NAMES)) / (height * width)
    return [index for index, share in enumerate(shares) if share >= min(_DOMINANT, shares.max())]
