"""All device work of one frame, in the order in which a graph captures it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.cascade.layout import CHOICE
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.frames import AnyFrame
from foveate.cuda.pixels.grid_layers import GridLayers
from foveate.cuda.pixels.pixels import Pixels

_TURN: Final = np.dtype(np.int32).itemsize * (CHOICE.names or ()).index("turn")  # its place in CHOICE


class FrameKernels:
    """Pixels, then the Cascade. Beside the channels goes what only needs the levels; beside the Cascade, the textures,
    on which nothing that is chosen depends."""

    def __init__(self, device: Device, pixels: Pixels, cascade: Cascade) -> None:
        self._pixels, self._cascade = pixels, cascade
        self._aside, self._ahead, self._beside = (device.stream() for _ in range(3))
        self._reached = device.event()
        turn = cascade.turn.pointer + _TURN
        self._grid_layers = GridLayers(device, pixels.state, pixels.stack, cascade.channels(), turn)

    @property
    def steps(self) -> tuple[Any, ...]:
        """Everything but the copies, as objects with ``enqueue(stream)``, in an order in which they may run."""
        pixels, cascade = self._pixels, self._cascade
        return (*pixels.steps, pixels.layers, *cascade.early, *cascade.steps, self._grid_layers)

    def enqueue(self, given: NDArray[np.void], slot: int, stream: Stream, frame: AnyFrame | None = None) -> None:
        """From a page-locked FRAME_INPUT to the record in ``slot``.

        Neither allocates nor waits, but for queries, which look at the ``frame`` and must be given it.
        """
        steps: tuple[Any, ...] = self._pixels.steps
        change, write, errors, *channels = steps
        self._pixels.frame.copy_from(given, stream)
        change.enqueue(stream)
        write.enqueue(stream)
        self._follow(self._ahead, stream)
        self._cascade.prepare(self._ahead)
        self._follow(self._beside, stream)
        errors.enqueue(self._beside)
        for step in channels:
            step.enqueue(stream)
        self._follow(self._aside, stream)
        self._pixels.layers.enqueue(self._aside)
        self._follow(stream, self._ahead)
        self._follow(stream, self._beside)
        if self._cascade.device_query is not None:
            assert frame is not None
            self._cascade.ask(frame, slot, stream)
        self._cascade.enqueue(stream)
        self._follow(self._aside, stream)
        self._grid_layers.enqueue(self._aside)
        self._cascade.fetch(slot, stream)
        self._follow(stream, self._aside)

    def _follow(self, stream: Stream, before: Stream) -> None:
        """What comes next on ``stream`` waits for what is on ``before`` now."""
        self._reached.record(before)
        stream.wait_for_event(self._reached)
