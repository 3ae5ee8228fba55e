"""The score map: a perceptual colour map laid over the grey picture."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.selection.drawing import enlarged
from foveate.pipeline.sinks.overlay.layout import Image

_GREY_SHARE: Final = 0.3
_HEAT_SHARE: Final = 0.85  # more than the rest: hot places saturate, cold ones still show the picture
_RELEASE: Final = 0.9  # per frame; the scale follows a rising score at once and a falling one slowly
_LEAST_TOP: Final = 0.05  # so that noise is not amplified to look like relevance


class HeatScale:
    """The score shown in the brightest colour; it follows the scene slowly, so that dim scenes show without flicker."""

    def __init__(self) -> None:
        self.top = _LEAST_TOP

    def follow(self, heat: NDArray[np.float32]) -> None:
        """Adapt to one frame's map."""
        highest = float(heat.max(initial=0.0))
        self.top = max(highest, _RELEASE * self.top, _LEAST_TOP)


def colour_ramp() -> Image:
    """uint8[1, 256, 3]: the colours from score 0 to the top of the scale, in RGB."""
    ramp = cv2.applyColorMap(np.arange(256, dtype=np.uint8)[None], cv2.COLORMAP_INFERNO)
    return np.ascontiguousarray(ramp[..., ::-1])


_RAMP: Final = colour_ramp()


def draw_heat(image: Image, selection: Selection, top: float) -> None:
    """Turn ``image``, the selection's picture at any scale, into its score map, in place.

    ``top`` is the score shown in the brightest colour. Raises KeyError where the selection has no map "score".
    """
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    levels = np.clip(selection.maps["score"] * np.float32(255 / top), 0, 255).astype(np.uint8)
    levels = enlarged(levels, PATCH, selection, image.shape, cv2.INTER_LINEAR)
    colours = cv2.LUT(cv2.cvtColor(levels, cv2.COLOR_GRAY2RGB), _RAMP)
    cv2.addWeighted(cv2.cvtColor(grey, cv2.COLOR_GRAY2RGB), _GREY_SHARE, colours, _HEAT_SHARE, 0.0, image)
