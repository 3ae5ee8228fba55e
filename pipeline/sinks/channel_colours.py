"""Colours for maps: by what a channel's numbers mean."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.geometry import Map

Image = NDArray[np.uint8]

_PRIMARY: Final = {"red": 0, "green": 1, "blue": 2}
_NEGATIVE: Final = np.array([33, 102, 192], np.float32)  # R'G'B' of the least value of a signed channel
_NOUGHT: Final = np.array([244, 244, 244], np.float32)
_POSITIVE: Final = np.array([190, 30, 45], np.float32)
_FAINT: Final = 1e-6  # smaller differences come from rounding, and are not amplified


def coloured(name: str, values: Map) -> Image:
    """R'G'B' uint8[rows, columns, 3] of float32[rows, columns].

    A colour channel keeps its colour and its range. Signed channels go from blue over white at 0 to red, identities
    have a colour each, and all others go from dark at 0 to light at this map's greatest value.
    """
    channel = BY_NAME.get(name)
    if name in _PRIMARY:
        image = np.zeros((*values.shape, 3), np.uint8)
        image[..., _PRIMARY[name]] = np.rint(np.clip(values, 0, 1) * 255)
        return image
    if channel is not None and name == "cluster_id":
        return _identities(values)
    if channel is not None and channel.low < 0:
        return _signed(values)
    top = max(float(values.max(initial=0.0)), _FAINT)
    levels = np.rint(np.clip(values / top, 0, 1) * 255).astype(np.uint8)
    return np.ascontiguousarray(cv2.applyColorMap(levels, cv2.COLORMAP_VIRIDIS)[..., ::-1])


def _signed(values: Map) -> Image:
    most = max(float(np.abs(values).max(initial=0.0)), _FAINT)
    share = np.clip(values / most, -1, 1)[..., None]
    ends = np.where(share < 0, _NEGATIVE, _POSITIVE)
    return np.rint(_NOUGHT + np.abs(share) * (ends - _NOUGHT)).astype(np.uint8)


def _identities(values: Map) -> Image:
    """Hues a golden angle apart, so that neighbouring numbers look different."""
    number = np.rint(values).astype(np.int64)
    hsv = np.empty((*values.shape, 3), np.uint8)
    hsv[..., 0] = number * 111 % 180  # OpenCV counts hues in steps of 2 degrees
    hsv[..., 1] = 120 + number % 3 * 50
    hsv[..., 2] = 235 - number % 2 * 60
    return np.asarray(cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB), np.uint8)
