"""Named colours, lightness and text of each cell, on the device: launches attributes.cu."""

from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.attributes.colours import tables
from foveate.pipeline.attributes.vocabulary import LIGHT, TEXT
from foveate.pipeline.cpu.attributes import MOST_STROKES, RIM, stroke_step
from foveate.pipeline.native.attributes import BINS, COLOUR_LEVEL, COLOURS, STROKE_LEVEL
from foveate.pipeline.query.terms import COEFFICIENTS


class Attributes:
    """Named colours, lightness and text, as pipeline.cpu.attributes.AttributeStack."""

    def __init__(self, device: Device, memory: Memory, pixels: PixelState, found: DeviceArray, stream: Stream) -> None:
        """``found``, float32[COEFFICIENTS, grid], receives them in the order of vocabulary.py; its other channels stay.

        Allocates on ``stream``. Raises ValueError for another shape, and EngineError if the device is out of memory.
        """
        grid = pixels.geometry.grid
        if found.shape != (COEFFICIENTS, *grid) or found.dtype != np.float32:
            raise ValueError(f"found must be float32{[COEFFICIENTS, *grid]}, got {found.dtype}{list(found.shape)}")
        names = memory.array("names of colours", BINS, np.uint8, stream)
        lightness = memory.array("lightness of colours", BINS, np.uint8, stream)
        strokes = memory.array("strokes", grid, np.float32, stream)
        table = tables(pixels.colour)
        names.upload(table.name, stream)
        lightness.upload(table.lightness, stream)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._attributes, self._text = program.kernel("attributes"), program.kernel("text", "TEXT_THREADS")
        self._tiles, self._blocks = pixels.written.nbytes, -(-grid[0] * grid[1] // self._text.threads)
        self._parameters = program.parameters(
            "Attributes",
            frame=pixels.frame,
            dirty=pixels.dirty,
            planes=[plane.level(COLOUR_LEVEL) for plane in pixels.planes],
            fine=pixels.planes[0].level(STROKE_LEVEL),
            name=names,
            lightness=lightness,
            shares=found,
            light=found.part(LIGHT),
            strokes=strokes,
            text=found.part(TEXT),
            rows=grid[0],
            columns=grid[1],
            step=stroke_step(pixels.colour),
            most=MOST_STROKES,
            rim=RIM,
        )
        assert COLOURS == LIGHT  # the shares of colours come first

    def enqueue(self, stream: Stream) -> None:
        """Update the tiles that were written, and text."""
        self._attributes.launch(stream, self._tiles, self._parameters)
        self._text.launch(stream, self._blocks, self._parameters)
