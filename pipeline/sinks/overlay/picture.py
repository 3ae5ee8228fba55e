"""One frame of the overlay: legend, picture with tokens, score map, what the model sees, figures over time."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.selection.drawing import draw_tokens
from foveate.pipeline.sinks.header import budget_of
from foveate.pipeline.sinks.overlay.heat import HeatScale, draw_heat
from foveate.pipeline.sinks.overlay.history import History, in_decibels
from foveate.pipeline.sinks.overlay.layout import Image, Panel, fitted, layout_for
from foveate.pipeline.sinks.overlay.legend import BACKGROUND, QueryText, draw_caption, draw_legend
from foveate.pipeline.sinks.overlay.reader import ReaderView, Seen
from foveate.pipeline.sinks.overlay.resize import picture_at

_CHART: Final = (26, 29, 37)  # behind the figures


class OverlayPicture:
    """Draws the frames of one stream, in order, all at one size: pictures of another size are letterboxed."""

    def __init__(self, header: Header) -> None:
        self.layout = layout_for(header.width, header.height)
        self._scale = HeatScale()
        self._empty = np.full((self.layout.height, self.layout.width, 3), BACKGROUND, np.uint8)
        self._budget, _ = budget_of(header)
        self._reader = ReaderView(header)
        self._history = History(self._budget)
        self._query = QueryText(header)
        self.psnr = 0.0  # dB, of what the model saw last
        self._followed: tuple[Selection, Seen] | None = None  # the latest
        self._drawn: tuple[Selection, Image] | None = None

    def draw(self, frame: FrameView, selection: Selection) -> Image:
        """R'G'B' uint8[layout.height, layout.width, 3] of one frame, not to be written to.

        The latest Selection is drawn once, however often it is asked for. Raises KeyError where it has no map "score",
        ValueError where it has no patches.
        """
        if self._drawn is None or self._drawn[0] is not selection:
            self._drawn = selection, self._draw(frame, selection, self.follow(frame, selection))
        return self._drawn[1]

    def _draw(self, frame: FrameView, selection: Selection, seen: Seen) -> Image:
        layout = self.layout
        canvas = self._empty.copy()
        legend = canvas[layout.legend.slices]
        draw_legend(legend, selection, self._budget, self._query.of(selection), self._scale.top, layout.font)
        for panel, caption in (
            (layout.picture, "tokens (dim: coarse, dark: none)"),
            (layout.score, "score"),
            (layout.reader, f"what the model sees: PSNR {in_decibels(seen.psnr)}"),
            (layout.history, "tokens (bars), PSNR (line), keyframes (red)"),
        ):
            draw_caption(canvas[panel.caption.slices], caption, layout.font)
        self._panels(canvas, frame, selection, seen.picture)
        return canvas

    def follow(self, frame: FrameView, selection: Selection) -> Seen:
        """Process a frame once, without drawing. Returns what the model sees."""
        if self._followed is None or self._followed[0] is not selection:
            self._scale.follow(selection.maps["score"])
            seen = self._reader.see(frame, selection)
            self.psnr = seen.psnr
            self._history.add(selection, seen.psnr)
            self._followed = selection, seen
        return self._followed[1]

    def _panels(self, canvas: Image, frame: FrameView, selection: Selection, seen: Image) -> None:
        def part(panel: Panel) -> Image:
            return canvas[fitted(frame.width, frame.height, panel.box).slices]

        layout = self.layout
        tokens, score, reader = part(layout.picture), part(layout.score), part(layout.reader)
        height, width = tokens.shape[:2]
        tokens[:] = score[:] = picture_at(frame, width, height)
        draw_tokens(tokens, selection)
        draw_heat(score, selection, self._scale.top)
        method = cv2.INTER_AREA if width < seen.shape[1] or height < seen.shape[0] else cv2.INTER_NEAREST
        reader[:] = cv2.resize(seen, (width, height), interpolation=method)
        chart = canvas[layout.history.box.slices]
        chart[:] = _CHART
        self._history.draw(chart, layout.font)
