"""Checks of requests before they reach the engine, where an error would end the whole server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.vllm.request import PATCHES, PLACES, SIZE

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

    Each value of ``data`` is a list of arrays, one for each frame, or they are stacked. ``longest``: positions that the
    language model may use. Raises ValueError, in one line, for all that is malformed.
    """
    if set(data) != {SIZE, PLACES, PATCHES}:
        names = ", ".join(sorted(map(str, data)))
        raise ValueError(f"chosen tokens are {SIZE}, {PLACES} and {PATCHES}, got {names}")
    sizes, places, patches = (_arrays(name, data[name]) for name in (SIZE, PLACES, PATCHES))
    if not sizes or not len(sizes) == len(places) == len(patches):
        raise ValueError(
            f"{SIZE} tells of {len(sizes)} frames, {PLACES} of {len(places)}, and {PATCHES} of {len(patches)}"
        )
    found = []
    for index, frame in enumerate(zip(sizes, places, patches, strict=True)):
        shown = _shown(index, *frame)
        found.append((shown, _groups(shown, merge)))
    _check_length([groups for _, groups in found], longest)
    return found


def _arrays(name: str, value: object) -> list[NDArray[Any]]:
    """An array for each frame."""
    return [_array(name, each) for each in value] if isinstance(value, list) else list(_array(name, value))


def _array(name: str, value: object) -> NDArray[Any]:
    """An array of NumPy, or a tensor of torch on the host, as an array."""
    if not (hasattr(value, "shape") and hasattr(value, "dtype") and len(value.shape)):
        raise ValueError(f"{name} must be an array, got {type(value).__name__}")
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # of a type that NumPy has not, sparse, or not on the host
        raise ValueError(f"{name} must be a dense array of plain numbers, got {value.dtype}") from None


def _integers(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Raises ValueError for another type or shape, and for numbers beyond int32."""
    if not np.issubdtype(array.dtype, np.integer) or array.shape != shape:
        raise ValueError(f"{name} must be int32{list(shape)}, got {_kind(array)}")
    if array.max() > np.iinfo(np.int32).max or array.min() < np.iinfo(np.int32).min:
        raise ValueError(f"{name} must be int32{list(shape)}, and holds larger numbers")
    return array.astype(np.int64)


def _kind(array: NDArray[Any]) -> str:
    return f"{array.dtype}{list(array.shape)}"


def _shown(index: int, size: NDArray[Any], places: NDArray[Any], patches: NDArray[Any]) -> Shown:
    """One frame. Raises ValueError where its arrays are not of the right kind, or do not fit each other."""
    size = _integers(SIZE, size, (2,))
    if (size < 1).any() or (size > MOST_PIXELS).any():
        raise ValueError(f"{SIZE}: width and height must be 1 to {MOST_PIXELS} pixels, got {size.tolist()}")
    if patches.dtype != np.uint8 or patches.ndim != 4 or patches.shape[1:] != (PATCH, PATCH, 3) or not len(patches):
        raise ValueError(f"{PATCHES} must be uint8[K, {PATCH}, {PATCH}, 3] with K at least 1, got {_kind(patches)}")
    places = _integers(PLACES, places, (len(patches), 3))
    _check_places(index, size, places)
    x, y = places[:, :2].T.astype(np.int32)
    return Shown(index, int(size[0]), int(size[1]), x, y, places[:, 2].astype(np.uint8), patches)


def _check_places(index: int, size: NDArray[np.int64], places: NDArray[np.int64]) -> None:
    """Raises ValueError for a LOD that is none, and for tokens that do not begin in the picture."""
    lod = places[:, 2]
    if (lod < 0).any() or (lod > _MOST_LOD).any():
        raise ValueError(f"{PLACES}: LODs must be 0 to {_MOST_LOD}, got {lod.min()} to {lod.max()} in frame {index}")
    start = places[:, :2] - (PATCH << lod)[:, None] // 2
    outside = ((start < 0) | (start >= size)).any(axis=1)
    if outside.any():
        x, y, level = places[outside.argmax()]
        raise ValueError(
            f"{PLACES}: the token at ({x}, {y}) with LOD {level} does not begin in the {size[0]}x{size[1]} picture "
            f"of frame {index}"
        )


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
