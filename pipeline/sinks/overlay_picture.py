"""One frame of the overlay: legend, picture with tokens, score map."""

from __future__ import annotations

import numpy as np

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.overlay_heat import HeatScale, draw_heat
from foveate.pipeline.sinks.overlay_layout import Image, fitted, layout_for
from foveate.pipeline.sinks.overlay_legend import BACKGROUND, draw_legend
from foveate.pipeline.sinks.overlay_scale import picture_at
from foveate.pipeline.sinks.overlay_tokens import draw_tokens


class OverlayPicture:
    """Draws the frames of one stream, in order, all at one size: pictures of another size are letterboxed."""

    def __init__(self, header: Header) -> None:
        self.layout = layout_for(header.width, header.height)
        self._scale = HeatScale()
        budget = header.config.get("budget")
        self._budget = budget if isinstance(budget, int) else None

    def draw(self, frame: FrameView, selection: Selection) -> Image:
        """R'G'B' uint8[layout.height, layout.width, 3] of one frame.

        Raises KeyError where the selection has no map "score".
        """
        self._scale.follow(selection.maps["score"])
        layout = self.layout
        canvas = np.full((layout.height, layout.width, 3), BACKGROUND, np.uint8)
        draw_legend(canvas[layout.legend.slices], selection, self._budget, self._scale.top, layout.font)
        left, right = (fitted(frame.width, frame.height, box) for box in (layout.picture, layout.score))
        picture = picture_at(frame, left.width, left.height)
        score = picture.copy()
        draw_tokens(picture, selection)
        draw_heat(score, selection, self._scale.top)
        canvas[left.slices], canvas[right.slices] = picture, score
        return canvas
