"""A 1080p scene in device memory: two pictures that differ in a tenth of the tiles, taking turns as frames."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import RedCheckError
from foveate.bench.clips.footage import read_footage
from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.device_selector import DeviceSelector
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.graph import Graph
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import SLOTS, FrameControls, InputPlanes
from foveate.cuda.pixels.pixels import Pixels
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import TILE, Geometry
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.keyframes import Keyframe

WIDTH: Final = 1920
HEIGHT: Final = 1080
_BLOBS: Final = ((3, 5), (12, 30), (22, 46))  # first tile of each region that changes
_BLOB: Final = (7, 10)  # tiles; three of them are a tenth of the picture
_BRIGHTER: Final = 9  # grey values between the two pictures: more than any threshold
_SHIFT: Final = 8  # pixels by which the content of the regions moves

Picture = NDArray[np.uint8]


def pictures(clip: Path) -> tuple[Picture, Picture]:
    """Two NV12 pictures, uint8[HEIGHT * 3 / 2, WIDTH]: the clip's first frame enlarged, and one with moved regions."""
    first = read_footage(clip, 1).pictures[0]
    luma = cv2.resize(first.luma, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    size = (WIDTH // 2, HEIGHT // 2)
    chroma = np.stack([cv2.resize(plane, size, interpolation=cv2.INTER_LINEAR) for plane in (first.cb, first.cr)], -1)
    moved = luma.copy()
    for row, column in _BLOBS:
        area = np.s_[row * TILE : (row + _BLOB[0]) * TILE, column * TILE : (column + _BLOB[1]) * TILE]
        rolled = np.roll(luma[area], _SHIFT, axis=1).astype(np.int16)
        moved[area] = np.clip(rolled + _BRIGHTER, 0, 255)
    pairs = chroma.reshape(HEIGHT // 2, WIDTH)
    return np.concatenate([luma, pairs]), np.concatenate([moved, pairs])


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """The pipeline's device work on the two pictures, without a source and without an engine's threads."""

    device: Device
    stream: Stream
    pixels: Pixels
    cascade: Cascade
    work: DeviceSelector
    frames: list[DeviceArray]  # the pictures as NV12 on the device, one for each slot

    def enqueue(self, number: int, stream: Stream) -> None:
        """One frame's work, as the engine captures it; ``number`` 0 or 1 says which picture."""
        self.work.enqueue(None, number, stream)

    def start(self) -> None:
        """Run the first frame, which loads kernels and writes all tiles."""
        self.cascade.begin(0, self.stream)
        self._describe(0, Keyframe.FIRST)
        self.enqueue(0, self.stream)
        self.stream.synchronize()
        self._describe(1, Keyframe.NONE)

    def _describe(self, index: int, keyframe: Keyframe) -> None:
        """Write the input records: both pictures as frame ``index``."""
        for slot, frame in enumerate(self.frames):
            chroma = frame.pointer + HEIGHT * WIDTH
            planes = InputPlanes((frame.pointer, chroma, chroma + 1), (WIDTH,) * 3, (1, 2, 2))
            self.pixels.input.write(slot, planes, index, keyframe, False, FrameControls(), None)

    def graphs(self) -> tuple[Graph, Graph]:
        """One frame's work on each picture, captured."""
        return (
            Graph(self.stream, lambda stream: self.enqueue(0, stream)),
            Graph(self.stream, lambda stream: self.enqueue(1, stream)),
        )

    def graph_times(self, warm: int, frames: int, keyframe: bool = False) -> tuple[list[float], Selection]:
        """Milliseconds of device time of each of ``frames`` graphs, launched without a pause behind ``warm`` others.

        The Selection is that of the last frame before. Raises RedCheckError as ``check``.
        """
        graphs = self.graphs()
        try:
            for index in range(warm):
                graphs[(index + 1) % 2].launch(self.stream)
            selection = self.check(0, keyframe)
            events = [(self.device.event(), self.device.event()) for _ in range(frames)]
            for index, (before, after) in enumerate(events):
                before.record(self.stream)
                graphs[(index + 1) % 2].launch(self.stream)
                after.record(self.stream)
            self.check(0, keyframe)
            return [float(after.time_since(before)) for before, after in events], selection
        finally:
            self.device.synchronize()
            for graph in graphs:
                graph.free()

    def selection(self, number: int) -> Selection:
        """The Selection of the frame that was enqueued last, with picture ``number``."""
        self.stream.synchronize()
        blank = np.zeros((HEIGHT, WIDTH), np.uint8)
        return self.cascade.selection(Frame(1, 0.0, blank, None), number)

    def check(self, number: int, keyframe: bool) -> Selection:
        """The Selection. Raises RedCheckError if the frame is not the one to be measured."""
        selection = self.selection(number)
        if keyframe != (selection.keyframe is not None):
            raise RedCheckError(f"the frame's keyframe is {selection.keyframe!r}")
        if not 0.09 <= selection.changed <= 0.11:
            raise RedCheckError(f"{selection.changed:.1%} of the tiles changed instead of a tenth")
        if not len(selection):
            raise RedCheckError("the frame has no tokens")
        return selection


@contextmanager
def open_scene(device: Device, settings: Settings, clip: Path) -> Iterator[Scene]:
    """Everything for one case, freed at the end."""
    stream, memory = device.stream(), Memory(device)
    pixels = Pixels(device, Geometry(WIDTH, HEIGHT), Colour("bt709"), True, settings, stream)
    cascade = Cascade(device, pixels.state, plan_stream(settings), Feedback(), stream)
    try:
        frames = [memory.array(f"picture {slot}", (HEIGHT * 3 // 2, WIDTH), np.uint8, stream) for slot in range(SLOTS)]
        for frame, picture in zip(frames, pictures(clip), strict=True):
            frame.upload(picture, stream)
        scene = Scene(device, stream, pixels, cascade, DeviceSelector(device, pixels, cascade), frames)
        scene.start()
        yield scene
    finally:
        device.synchronize()
        cascade.free()
        pixels.free()
        memory.free()
