"""What a request says, checked before it reaches the engine: what would be wrong there would end the whole server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.vllm.request import FRAMES, PATCHES, PLACES

PREFIX: Final = "foveate_"
MOST_GROUPS: Final = 4096  # of a frame; the towers' rotary tables hold 8,192 rows, and the groups are shown as a column
MOST_PIXELS: Final = 16384  # of a side
_MOST_LOD: Final = 10  # a token of that LOD covers 16,384 pixels


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """The tokens of one frame, as Selection holds them."""

    index: int  # which one of the request
    width: int
    height: int
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    lod: NDArray[np.uint8]
    patches: NDArray[np.uint8]  # [K, PATCH, PATCH, 3]

    def __len__(self) -> int:
        return len(self.x)

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells that hold any of the picture."""
        return -(-self.height // PATCH), -(-self.width // PATCH)


def is_chosen(data: object) -> bool:
    """Whether an image of a request is, or claims to be, chosen tokens."""
    return isinstance(data, Mapping) and any(str(name).startswith(PREFIX) for name in data)


def frames_of(data: Mapping[str, object], merge: int, longest: int) -> list[tuple[Shown, Groups]]:
    """The frames of a request, each with its groups of ``merge`` x ``merge`` tokens.

    ``longest``: positions that the language model may use. Raises ValueError, in one line, for all that is malformed.
    """
    frames, places, patches = _arrays(data)
    counts = frames[:, 2]
    if (counts < 1).any():
        raise ValueError(f"{FRAMES}: each frame must have a token, got {counts.min()} of frame {counts.argmin()}")
    if counts.sum() != len(places) or len(places) != len(patches):
        raise ValueError(
            f"{FRAMES} tells of {counts.sum()} tokens, {PLACES} of {len(places)}, and {PATCHES} of {len(patches)}"
        )
    if (frames[:, :2] < 1).any() or (frames[:, :2] > MOST_PIXELS).any():
        raise ValueError(f"{FRAMES}: width and height must be 1 to {MOST_PIXELS} pixels, got {frames[:, :2].tolist()}")
    ends = [0, *counts.cumsum().tolist()]
    shown = [
        _shown(index, frames[index], places[start:end], patches[start:end])
        for index, (start, end) in enumerate(pairwise(ends))
    ]
    found = [(frame, _groups(frame, merge)) for frame in shown]
    _check_length([groups for _, groups in found], longest)
    return found


def _arrays(data: Mapping[str, object]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint8]]:
    if set(data) != {FRAMES, PLACES, PATCHES}:
        names = ", ".join(sorted(map(str, data)))
        raise ValueError(f"chosen tokens are {FRAMES}, {PLACES} and {PATCHES}, got {names}")
    frames = _integers(FRAMES, _array(FRAMES, data[FRAMES]))
    places = _integers(PLACES, _array(PLACES, data[PLACES]))
    patches = _array(PATCHES, data[PATCHES])
    if patches.dtype != np.uint8 or patches.ndim != 4 or patches.shape[1:] != (PATCH, PATCH, 3):
        raise ValueError(f"{PATCHES} must be uint8[K, {PATCH}, {PATCH}, 3], got {_kind(patches)}")
    return frames, places, patches


def _array(name: str, value: object) -> NDArray[Any]:
    """An array of NumPy, or a tensor of torch on the host, as an array."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype")):
        raise ValueError(f"{name} must be an array, got {type(value).__name__}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # of a type that NumPy has not, sparse, or not on the host
        raise ValueError(f"{name} must be a dense array of plain numbers, got {value.dtype}") from None


def _integers(name: str, array: NDArray[Any]) -> NDArray[np.int64]:
    if not np.issubdtype(array.dtype, np.integer) or array.ndim != 2 or array.shape[1] != 3 or not len(array):
        raise ValueError(f"{name} must be int32[N, 3] with N at least 1, got {_kind(array)}")
    if array.max() > np.iinfo(np.int32).max or array.min() < np.iinfo(np.int32).min:
        raise ValueError(f"{name} must be int32[N, 3], and holds larger numbers")
    return array.astype(np.int64)


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _shown(index: int, frame: NDArray[np.int64], places: NDArray[np.int64], patches: NDArray[np.uint8]) -> Shown:
    """Raises ValueError for a LOD that is none, and for tokens that do not begin in the picture."""
    lod = places[:, 2]
    if (lod < 0).any() or (lod > _MOST_LOD).any():
        raise ValueError(f"{PLACES}: LODs must be 0 to {_MOST_LOD}, got {lod.min()} to {lod.max()} in frame {index}")
    start = places[:, :2] - (PATCH << lod)[:, None] // 2
    outside = ((start < 0) | (start >= frame[:2])).any(axis=1)
    if outside.any():
        x, y = places[outside.argmax(), :2]
        raise ValueError(
            f"{PLACES}: the token at ({x}, {y}) with LOD {lod[outside.argmax()]} does not begin in the "
            f"{frame[0]}x{frame[1]} picture of frame {index}"
        )
    x, y = places[:, :2].T.astype(np.int32)
    return Shown(index, int(frame[0]), int(frame[1]), x, y, lod.astype(np.uint8), patches)


def _groups(frame: Shown, merge: int) -> Groups:
    """Raises ValueError where the tokens are no groups, of too many, or of some in one and the same place."""
    groups = Groups.of(frame, merge)
    if len(groups) > MOST_GROUPS:
        raise ValueError(f"frame {frame.index} has {len(groups)} groups of tokens; at most {MOST_GROUPS} are read")
    parts = np.stack(np.divmod(np.arange(merge * merge), merge)[::-1], 1)
    side = PATCH << frame.lod.reshape(-1, merge * merge, 1).astype(np.int64)
    at = np.stack([frame.x, frame.y], 1).reshape(-1, merge * merge, 2).astype(np.int64)
    offset = at - at[:, :1]
    if not ((offset == parts * side) | (offset == 0)).all():  # beyond an edge, tokens repeat their neighbours
        raise ValueError(
            f"frame {frame.index} does not hold groups of {merge}x{merge} neighbours, row by row; "
            f'open the stream with allocation={{"merge": {merge}}}'
        )
    if len(np.unique(groups.position)) < len(groups):
        raise ValueError(f"frame {frame.index} has two groups in one place")
    return groups


def _check_length(frames: list[Groups], longest: int) -> None:
    tokens, positions = sum(map(len, frames)), sum(max(groups.grid) for groups in frames)
    if max(tokens, positions) > longest:
        raise ValueError(
            f"the frames take {tokens} tokens and {positions} positions, which exceeds the model's context {longest}; "
            "ask about fewer or smaller frames"
        )
