"""Frames for the plugin of vLLM that are wrong in one way each, and what is to be said of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from foveate.pipeline.vlm.vllm.request import PATCHES, PLACES, SIZE

Arrays = dict[str, Any]
Change = Callable[[Arrays], Arrays]


def _with(name: str, change: Callable[[Any], Any]) -> Change:
    """The arrays with one of them changed."""
    return lambda arrays: {**arrays, name: change(arrays[name].copy())}


def _set(name: str, index: Any, value: int) -> Change:
    def put(array: Any) -> Any:
        array[index] = value
        return array

    return _with(name, put)


def _without(name: str) -> Change:
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def _first(count: int) -> Change:
    """Only the first tokens."""
    return lambda arrays: {SIZE: arrays[SIZE]} | {name: arrays[name][:count] for name in (PLACES, PATCHES)}


def _twice(arrays: Arrays) -> Arrays:
    """All tokens again in the same frame."""
    return {SIZE: arrays[SIZE]} | {name: np.concatenate([arrays[name]] * 2) for name in (PLACES, PATCHES)}


def _nan(array: Any) -> Any:
    return np.full(array.shape, np.nan, np.float32)


MALFORMED: dict[str, tuple[Change, str]] = {
    "no size": (_without(SIZE), "chosen tokens are"),
    "no places": (_without(PLACES), "chosen tokens are"),
    "no patches": (_without(PATCHES), "chosen tokens are"),
    "another key": (lambda arrays: {**arrays, "pixel_values": np.zeros((1, 3))}, "chosen tokens are"),
    "a key of the engine": (lambda arrays: {**arrays, "foveate_group": np.zeros(3, np.int64)}, "chosen tokens are"),
    "places of float": (_with(PLACES, lambda a: a.astype(np.float32)), f"{PLACES} must be int32"),
    "places that are NaN": (_with(PLACES, _nan), f"{PLACES} must be int32"),
    "places of two numbers": (_with(PLACES, lambda a: a[:, :2]), f"{PLACES} must be int32"),
    "no token": (_first(0), "must"),
    "patches of float": (_with(PATCHES, lambda a: a.astype(np.float32)), f"{PATCHES} must be uint8"),
    "patches of int8": (_with(PATCHES, lambda a: a.astype(np.int8)), f"{PATCHES} must be uint8"),
    "patches of bool": (_with(PATCHES, lambda a: a > 0), f"{PATCHES} must be uint8"),
    "patches of 14 pixels": (_with(PATCHES, lambda a: a[:, :14, :14]), f"{PATCHES} must be uint8"),
    "patches with alpha": (_with(PATCHES, lambda a: np.concatenate([a, a[..., :1]], -1)), f"{PATCHES} must be uint8"),
    "flat patches": (_with(PATCHES, lambda a: a.reshape(len(a), -1)), f"{PATCHES} must be uint8"),
    "fewer patches": (_with(PATCHES, lambda a: a[:-4]), f"{PLACES} must be int32"),
    "fewer places": (_with(PLACES, lambda a: a[:-4]), f"{PLACES} must be int32"),
    "sizes of float": (_with(SIZE, lambda a: a.astype(np.float64)), f"{SIZE} must be int32"),
    "a size of three numbers": (_with(SIZE, lambda a: np.append(a, 1)), f"{SIZE} must be int32"),
    "sizes that are NaN": (_with(SIZE, _nan), f"{SIZE} must be int32"),
    "no width": (_set(SIZE, 0, 0), "width and height must be 1 to 16384"),
    "a negative height": (_set(SIZE, 1, -128), "width and height must be 1 to 16384"),
    "a picture beyond bounds": (_set(SIZE, 0, 2**30), "width and height must be 1 to 16384"),
    "a picture beyond the context": (_set(SIZE, 0, 16384), "width and height|exceeds the model's context"),
    "half a group": (_first(6), "does not hold such groups"),
    "a group of two LODs": (_set(PLACES, (0, 2), 1), "does not hold such groups|begin in the"),
    "a negative LOD": (_set(PLACES, (0, 2), -1), "LODs must be 0 to 10"),
    "a LOD beyond all": (_set(PLACES, (slice(None), 2), 60), "LODs must be 0 to 10"),
    "a centre left of the picture": (_set(PLACES, (0, 0), -40), "does not begin in the"),
    "a centre right of the picture": (_set(PLACES, (0, 0), 4000), "does not begin in the"),
    "a centre below the picture": (_set(PLACES, (0, 1), 4000), "does not begin in the"),
    "a centre beyond all": (_set(PLACES, (0, 0), 2**31 - 1), "does not begin in the"),
    "neighbours that are none": (_set(PLACES, (1, 1), 8), "groups of 2x2 neighbours"),
    "a group twice": (_twice, "two groups in one place"),
}  # fmt: skip
