"""The figures of every frame of one stream, for the report."""

import math
from array import array
from typing import Final

from foveate.pipeline.selection import Selection

EXACT: Final = 100.0  # dB, in place of infinity: what equal pictures count in means and charts


class Figures:
    """Keeps 32 bytes a frame (40 if the budget is an average): 70 MB for a day of video at 25 frames a second."""

    def __init__(self) -> None:
        self.times = array("d")  # seconds since the first frame
        self.tokens = array("d")
        self.psnr = array("d")  # dB
        self.changed = array("d")  # share of tiles, in [0, 1]
        self.debt = array("d")  # tokens ahead of the average, where the budget is one
        self.keyframes = array("d")  # the times of those frames
        self.queries: list[tuple[float, tuple[str, ...]]] = []  # the time from which each query holds
        self._start: float | None = None

    def __len__(self) -> int:
        return len(self.times)

    def start(self, selection: Selection) -> float:
        """Time of the first frame; ``selection`` is the one that is about to be added."""
        self._start = selection.time if self._start is None else self._start
        return self._start

    def add(self, selection: Selection, psnr: float) -> None:
        """Append one frame."""
        time = selection.time - self.start(selection)
        self.times.append(time)
        self.tokens.append(len(selection))
        self.psnr.append(EXACT if math.isinf(psnr) else psnr)
        self.changed.append(selection.changed)
        if "debt" in selection.extras:
            self.debt.append(selection.extras["debt"])
        if selection.keyframe is not None:
            self.keyframes.append(time)
        if "query" in selection.extras:
            self.queries.append((time, tuple(selection.extras["query"])))

    @property
    def span(self) -> float:
        """Seconds from the first frame to the last."""
        return self.times[-1] if self.times else 0.0
