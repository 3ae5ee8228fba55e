"""The tokens that a method sends, frame by frame, and the readers that paint them."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Footage, Plane
from foveate.bench.reader.painting import ReaderPicture, Tokens, lods_at
from foveate.pipeline.selection.painting import Interpolation


class Sent(NamedTuple):
    """The tokens of one frame, and what they are sampled from.

    ``planes`` are Y, Cb, Cr as in Picture, valid until the next frame. ``cost`` is the budget that one token takes: 1,
    but for a picture that was resized as a whole, of which ``planes`` show the enlargement and ``tokens`` every cell.
    ``coarser`` is what such a picture's LOD is above that of its tokens, ``interpolation`` how a reader enlarges them.
    """

    planes: tuple[Plane, ...]
    tokens: Tokens
    cost: float = 1.0
    coarser: float = 0.0
    interpolation: Interpolation = "bilinear"

    @property
    def size(self) -> int:
        """Tokens of the budget."""
        return round(len(self.tokens) * self.cost)


class Shown(NamedTuple):
    """A reader's picture after a frame: Y, Cb, Cr as in Picture, valid until the next; and the tokens read in it."""

    planes: tuple[Plane, ...]
    tokens: int


Method = Callable[[Footage, int], Iterator[Sent]]
"""A way to choose tokens: yields what is sent in each frame of a clip, at a number of tokens per frame."""


def of_mask(planes: tuple[Plane, ...], mask: NDArray[np.bool_]) -> Sent:
    """The cells of ``mask``, bool[rows, columns], at full resolution, in the order of the rows."""
    rows, columns = np.nonzero(mask)
    return Sent(planes, np.stack([rows, columns, np.zeros_like(rows)], axis=1).astype(np.int32))


def at_once(sent: Iterable[Sent], footage: Footage) -> Iterator[Shown]:
    """A reader that reads all tokens of a frame at once, however many they are."""
    reader = ReaderPicture(footage.shapes)
    for frame in sent:
        reader.paint(frame.planes, lods_at(frame.tokens, footage.grid), frame.interpolation)
        yield Shown(tuple(reader.planes), frame.size)


def at_constant_rate(sent: Iterable[Sent], footage: Footage, rate: int) -> Iterator[Shown]:
    """A reader that reads ``rate`` tokens per frame, first in, first out; the others wait."""
    reader = ReaderPicture(footage.shapes)
    waiting: deque[Sent] = deque()
    for frame in sent:
        waiting.append(frame)
        room = float(rate)
        while waiting and room > 0:
            first = waiting.popleft()
            read = min(len(first.tokens), int(room / first.cost + 1e-6))
            reader.paint(first.planes, lods_at(first.tokens[:read], footage.grid), first.interpolation)
            room -= read * first.cost
            if read < len(first.tokens):
                waiting.appendleft(first._replace(tokens=first.tokens[read:]))
                break
        if waiting and waiting[-1].planes is frame.planes:
            waiting[-1] = waiting[-1]._replace(planes=tuple(plane.copy() for plane in frame.planes))
        yield Shown(tuple(reader.planes), round(rate - room))
