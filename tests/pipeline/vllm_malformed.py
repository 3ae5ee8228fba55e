"""Requests for the plugin of vLLM that are wrong in one way each, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from foveate.pipeline.vlm.vllm.request import FRAMES, PATCHES, PLACES

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
    """Only the first tokens, and a frame that says so."""

    def cut(arrays: Arrays) -> Arrays:
        frames = arrays[FRAMES].copy()
        frames[..., 2] = count
        return {FRAMES: frames, PLACES: arrays[PLACES][:count], PATCHES: arrays[PATCHES][:count]}

    return cut


def _twice(arrays: Arrays) -> Arrays:
    """All tokens again in the same frame."""
    frames = arrays[FRAMES].copy()
    frames[..., 2] *= 2
    return {FRAMES: frames} | {name: np.concatenate([arrays[name]] * 2) for name in (PLACES, PATCHES)}


def _nan(array: Any) -> Any:
    return np.full(array.shape, np.nan, np.float32)


MALFORMED: dict[str, tuple[Change, str]] = {
    "no frames": (_without(FRAMES), "chosen tokens are"),
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
    "fewer patches": (_with(PATCHES, lambda a: a[:-4]), "tokens"),
    "fewer places": (_with(PLACES, lambda a: a[:-4]), "tokens"),
    "a count that is too high": (_set(FRAMES, (..., 2), 1000), "tokens"),
    "a count that is too low": (_set(FRAMES, (..., 2), 4), "tokens"),
    "a negative count": (_set(FRAMES, (..., 2), -28), "must have a token"),
    "a count beyond memory": (_set(FRAMES, (..., 2), 2**31 - 1), "tokens"),
    "no width": (_set(FRAMES, (..., 0), 0), "width and height must be 1 to 16384"),
    "a negative height": (_set(FRAMES, (..., 1), -128), "width and height must be 1 to 16384"),
    "a picture beyond bounds": (_set(FRAMES, (..., 0), 2**30), "width and height must be 1 to 16384"),
    "a picture beyond the context": (_set(FRAMES, (..., 0), 16384), "width and height|exceeds the model's context"),
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
