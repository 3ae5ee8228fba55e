"""Attributes of cells on the device against the CPU engine's compiled kernels: counts, so equal to the last bit."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.query.attributes import Attributes
from foveate.cuda.query.background import BackgroundModel
from foveate.cuda.state import FRAME_STATE, PlaneLevels
from foveate.pipeline.attributes.vocabulary import LARGEST, MOVING, SMALLEST, TEXT
from foveate.pipeline.cpu.attributes import AttributeStack
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.terms import COEFFICIENTS

_UNTOUCHED = np.frombuffer(b"\xff" * 4, np.uint32)[0]


class Side:
    """The device's attributes of pictures whose levels are the CPU's."""

    def __init__(self, device: Device, memory: Memory, stream: Stream, levels: Levels, geometry: Geometry) -> None:
        self._stream, self._levels = stream, levels
        self._planes = tuple(self._plane(memory, plane) for plane in levels.planes)
        tiles = geometry.tiles
        self._pixels = SimpleNamespace(
            geometry=geometry,
            colour=Colour(),
            frame=memory.array("frame", (), FRAME_STATE, stream),
            dirty=memory.array("dirty", (tiles[0] * tiles[1],), np.int32, stream),
            written=memory.array("written", tiles, np.uint8, stream),
            planes=self._planes,
        )
        self.found = memory.array("found", (COEFFICIENTS, *geometry.grid), np.float32, stream, fill=0xFF)
        pixels: Any = self._pixels
        self._attributes = Attributes(device, memory, pixels, self.found, stream)
        self._background = BackgroundModel(device, memory, pixels, stream)

    def _plane(self, memory: Memory, plane: Any) -> PlaneLevels:
        arrays = [plane.pixels, *plane.coarse]
        return PlaneLevels(plane.base, tuple(memory.array("level", a.shape, a.dtype, self._stream) for a in arrays))

    def update(
        self, written: NDArray[np.bool_], index: int, new_scene: bool, noise: int = 0
    ) -> dict[str, NDArray[np.float32]]:
        """The maps after ``written`` tiles of the CPU's levels have come over."""
        for ours, theirs in zip(self._planes, self._levels.planes, strict=True):
            for array, values in zip(ours.levels, (theirs.pixels, *theirs.coarse), strict=True):
                array.upload(values, self._stream)
        state = np.zeros((), FRAME_STATE)
        state["dirty_count"], state["new_scene"], state["noise"] = written.sum(), new_scene, noise
        dirty = np.full(self._pixels.dirty.shape, 1 << 30, np.int32)
        dirty[: written.sum()] = np.random.default_rng(index).permutation(np.flatnonzero(written))
        for array, values in ((self._pixels.frame, state), (self._pixels.dirty, dirty)):
            array.upload(values, self._stream)
        self._pixels.written.upload(written.astype(np.uint8), self._stream)
        self._attributes.enqueue(self._stream)
        self._background.enqueue(index, self._stream)
        found = self.found.download(self._stream)
        difference, foreground = self._background.maps.download(self._stream)
        return {
            **{f"clip{i}": found[i] for i in range(12)},
            "text": found[TEXT],
            "frame_difference": difference,
            "foreground": foreground,
        }


def pictures(height: int, width: int, halved: bool) -> Iterator[tuple[list[NDArray[np.uint8]], float]]:
    """Planes, and the share of the tiles that differ from the picture before."""
    random = np.random.default_rng(height * 1000 + width)
    size = ((height + 1) // 2, (width + 1) // 2) if halved else (height, width)
    luma = random.integers(0, 256, (height, -(-width // 4))).repeat(4, axis=1)[:, :width].astype(np.uint8)
    chroma = [random.integers(0, 256, size).astype(np.uint8) for _ in range(2)]
    for number, share in enumerate((1.0, 0.0, 0.3, 0.1, 0.3, *([0.2] * 12), 0.9, 0.0, 0.2, 0.1)):
        if share:
            for plane in (luma, *chroma):
                other = random.integers(0, 256, (plane.shape[0], -(-plane.shape[1] // 4))).repeat(4, axis=1)
                mask = random.random(plane.shape) < 0.15 * share
                plane[mask] = other[:, : plane.shape[1]][mask]
        dimmed = np.rint(luma * (1.0, 0.85, 0.7)[number % 3]).astype(np.uint8)  # the light changes all the time
        yield [plane.copy() for plane in (dimmed, *chroma)], share


@pytest.mark.gpu
@pytest.mark.parametrize("halved", [True, False])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (33, 97), (64, 32), (130, 150), (300, 1100)])
def test_maps_are_the_cpu_engines(
    height: int, width: int, halved: bool, device: Device, memory: Memory, stream: Stream
) -> None:
    """Some tiles, none, all; a camera that moves; new scenes; pauses until a cell rests."""
    geometry, random = Geometry(width, height), np.random.default_rng(width)
    levels, stack = Levels(geometry, halved), AttributeStack(geometry, Colour())
    side = Side(device, memory, stream, levels, geometry)
    index, known = 0, 0
    for planes, share in pictures(height, width, halved):
        written = random.random(geometry.tiles) < (1.0 if index == 0 else share)
        noise = int(random.choice([0, 3, 47, 200]))
        new_scene = index == 0 or (share == 0.9 and bool(written.any()))
        if written.any():
            levels.update(tuple(planes), written)
            stack.update(levels, written, index, new_scene, noise)
        found = side.update(written, index, new_scene, noise)
        for name, values in stack.maps().items():
            np.testing.assert_array_equal(found[name], values, f"{name}, frame {index}")
        known += int((found["foreground"] >= 0).sum())
        index += int(random.integers(1, 6))
    assert width < 33 or (known and stack.maps()["text"].max() > 0)
    rest = side.found.download(stream)[[MOVING, SMALLEST, LARGEST]]
    assert (rest.view(np.uint32) == _UNTOUCHED).all()


@pytest.mark.gpu
@pytest.mark.parametrize("rests", [0, 1])
def test_where_half_of_the_cells_stir_nothing_is_at_rest(
    rests: int, device: Device, memory: Memory, stream: Stream
) -> None:
    """Those of the lower half, which is behind the first 1,024 cells; but for one tile, what rested stays known."""
    geometry = Geometry(1120, 320)
    levels, every = Levels(geometry, True), np.ones(geometry.tiles, np.bool_)
    side = Side(device, memory, stream, levels, geometry)
    luma, chroma = np.full((320, 1120), 100, np.uint8), np.full((160, 560), 128, np.uint8)
    levels.update((luma, chroma, chroma), every)
    side.update(every, 0, new_scene=True)
    luma[160:] = 150
    luma[160:192, : 32 * rests] = 100
    levels.update((luma, chroma, chroma), every)
    foreground = side.update(every, 20, new_scene=False)["foreground"]
    if rests:
        assert (foreground[10:, 2:] == 1).all()
        assert (foreground[:10] == 0).all()
    else:
        assert (foreground == -1).all()


@pytest.mark.gpu
def test_light_that_dims_is_no_difference_and_what_comes_is(device: Device, memory: Memory, stream: Stream) -> None:
    geometry, random = Geometry(320, 160), np.random.default_rng(3)
    levels, every = Levels(geometry, True), np.ones(geometry.tiles, np.bool_)
    side = Side(device, memory, stream, levels, geometry)
    luma = random.integers(60, 200, (40, 80)).repeat(4, 0).repeat(4, 1)
    chroma = np.full((80, 160), 128, np.uint8)
    came = luma.copy()
    came[64:128, 64:128] = random.integers(60, 200, (16, 16)).repeat(4, 0).repeat(4, 1)
    differences = []
    for index, picture in enumerate((luma, luma * 0.8, came * 0.9)):
        levels.update((np.rint(picture).astype(np.uint8), chroma, chroma), every)
        differences.append(side.update(every, 20 * index, new_scene=index == 0)["frame_difference"])
    assert (differences[1] == 0).all()
    assert (differences[2][4:8, 4:8] > 0).all()
    differences[2][3:9, 3:9] = 0  # one cell around it: part of its window
    assert (differences[2] == 0).all()


@pytest.mark.gpu
def test_another_shape_is_refused(device: Device, memory: Memory, stream: Stream) -> None:
    geometry = Geometry(64, 32)
    pixels: Any = SimpleNamespace(geometry=geometry)
    wrong: DeviceArray = memory.array("found", geometry.grid, np.float32, stream)
    with pytest.raises(ValueError, match="found must be float32"):
        Attributes(device, memory, pixels, wrong, stream)
