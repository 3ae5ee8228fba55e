"""Merge groups: the merge x merge neighbours that a model makes one language-model token of."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH
from foveate.pipeline.vlm.places import Located, Places


@dataclass(frozen=True, slots=True)
class Groups:
    """The G merge groups of one Selection, in a prompt's order: row by row, by the cell that holds their centre."""

    merge: int
    order: NDArray[np.intp]  # [G * merge**2]: which of the Selection's tokens, group after group
    position: NDArray[np.int64]  # [G], ascending: which group of the whole picture's grid holds the centre
    grid: tuple[int, int]  # rows and columns of the whole picture's groups of LOD 0
    places: Places  # of the tokens, in ``order``

    @classmethod
    def of(cls, selection: Located, merge: int) -> Self:
        """The groups of a Selection of a stream with ``allocation.merge`` = ``merge``.

        Raises ValueError where its tokens are no such groups.
        """
        tokens = merge * merge
        check_groups(selection, merge)
        grid = _ceil(selection.height, PATCH * merge), _ceil(selection.width, PATCH * merge)
        row = np.minimum(_middle(selection.y, selection.lod, merge), grid[0] - 1)
        column = np.minimum(_middle(selection.x, selection.lod, merge), grid[1] - 1)
        position = row * grid[1] + column
        by_place = np.argsort(position, kind="stable")
        order = (by_place[:, None] * tokens + np.arange(tokens)).ravel()
        return cls(merge, order, position[by_place], grid, Places.of(selection)[order])

    def __len__(self) -> int:
        return len(self.position)

    def per_token(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """One value for each group, float[G], as one for each of the Selection's tokens, float32[K] in its order."""
        spread = np.empty(len(self.order), np.float32)
        spread[self.order] = np.repeat(values, self.merge * self.merge)
        return spread


def check_groups(selection: Located, merge: int) -> None:
    """Raises ValueError where the tokens of ``selection`` are no groups of ``merge`` x ``merge``."""
    tokens = merge * merge
    if len(selection) % tokens or (selection.lod.reshape(-1, tokens) != selection.lod[::tokens, None]).any():
        raise ValueError(
            f"the model merges {merge}x{merge} tokens, and frame {selection.index} does not hold such groups; "
            f'open the stream with allocation={{"merge": {merge}}}'
        )


def _middle(centre: NDArray[np.int32], lod: NDArray[np.uint8], merge: int) -> NDArray[np.int64]:
    """Which LOD-0 group, along one axis, holds the middle of each group; ``centre`` is that of each token."""
    side = PATCH << lod[:: merge * merge].astype(np.int64)
    start = centre[:: merge * merge] - side // 2  # of the group's first token, its top left one
    return np.asarray((start + side * merge // 2) // (PATCH * merge), np.int64)


def _ceil(pixels: int, side: int) -> int:
    return -(-pixels // side)
