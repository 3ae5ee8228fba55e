"""What a picture that serves as an example asks for: its colours."""

from __future__ import annotations

from typing import Final, NamedTuple

import cv2
import numpy as np

from foveate.pipeline.attributes.colours import NAMES, named
from foveate.pipeline.attributes.vocabulary import VOCABULARY, Term
from foveate.pipeline.query.example import Example, example

_DOMINANT: Final = 0.2  # share of the picture that a colour must have
_SIDE: Final = 64  # samples along a side are enough to know that


class Shown(NamedTuple):
    """What is looked for on behalf of an example."""

    term: Term  # the share of a cell's samples that have any of the colours
    colours: list[str]


def shown_in(path: str) -> Shown:
    """The dominant colours of the picture in a file. Raises SourceError."""
    colours = [NAMES[index] for index in dominant(example(path))]
    terms = [VOCABULARY[colour][0].term() for colour in colours]
    weights = np.stack([weights for weights, _ in terms]).sum(axis=0)
    return Shown((np.asarray(weights, np.float32), terms[0][1]), colours)


def dominant(shown: Example) -> list[int]:
    """Indices in NAMES of the colours of a fifth of what a picture shows or more; if there is none, of the most.

    The picture is looked at in at most 64 x 64 samples, which are means. Transparent ones do not count.
    """
    height, width = (min(side, _SIDE) for side in shown.shows.shape)
    small = cv2.resize(shown.filled(), (width, height), interpolation=cv2.INTER_AREA)
    share = cv2.resize(shown.shows.astype(np.float32), (width, height), interpolation=cv2.INTER_AREA)
    counts = share >= min(0.5, share.max())
    lab = cv2.cvtColor(small.astype(np.float32) / np.float32(255), cv2.COLOR_RGB2Lab)
    shares = np.bincount(named(np.asarray(lab[counts], np.float32)), minlength=len(NAMES)) / np.count_nonzero(counts)
    return [index for index, share in enumerate(shares) if share >= min(_DOMINANT, shares.max())]
