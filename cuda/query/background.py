"""Background model on the device: launches of background.cu."""

from math import ceil
from pathlib import Path

import numpy as np

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.attributes.background import LEARNING_FRAMES, NOISE_STEP, PANS, STEP
from foveate.pipeline.native.background import BACKGROUND_LEVEL
from foveate.pipeline.spec.light import MOMENTS


class BackgroundModel:
    """Keeps ``maps``, float32[2, grid]: "frame_difference" and "foreground", as pipeline.cpu.background does."""

    def __init__(self, device: Device, memory: Memory, pixels: PixelState, stream: Stream) -> None:
        """Allocate on ``stream``. Raises EngineError where the card is full."""
        grid, samples = pixels.geometry.grid, pixels.geometry.level(BACKGROUND_LEVEL)
        last, background = (
            memory.array(name, (3, *samples), np.uint8, stream) for name in ("previous picture", "background")
        )
        self.maps = memory.array("frame difference and foreground", (2, *grid), np.float32, stream)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._update = program.kernel("update_background")
        self._light = program.kernel("without_light", "LIGHT_THREADS")
        self._reset = program.kernel("reset_background", "RESET_THREADS")
        self._tiles, self._blocks = pixels.written.nbytes, -(-grid[0] * grid[1] // self._light.threads)
        self._parameters = program.parameters(
            "Background",
            frame=pixels.frame,
            written=pixels.written,
            now=[plane.level(BACKGROUND_LEVEL) for plane in pixels.planes],
            last=[last.part(plane) for plane in range(3)],
            background=[background.part(plane) for plane in range(3)],
            known=memory.array("background known", grid, np.uint8, stream),
            coloured=memory.array("cells of other chroma", grid, np.uint8, stream),
            last_change=memory.array("last change", grid, np.int32, stream),
            moments=memory.array("moments of cells", (MOMENTS, *grid), np.int32, stream),
            difference=self.maps.part(0),
            foreground=self.maps.part(1),
            rows=grid[0],
            columns=grid[1],
            index=0,
            learning_frames=LEARNING_FRAMES,
            step=STEP,
            noise_step=NOISE_STEP,
            pans=ceil(PANS * grid[0] * grid[1]),
        )

    def enqueue(self, index: int, stream: Stream) -> None:
        """Compare the tiles that were written in frame ``index`` of the source."""
        self._parameters["index"] = index
        self._update.launch(stream, self._tiles, self._parameters)
        self._light.launch(stream, self._blocks, self._parameters)
        self._reset.launch(stream, 1, self._parameters)
