"""The GPU for tests: skipped without a card, or failed with ``--gpu-required``; and what can stand in for one."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda import engine, format_session, host_selector
from foveate.cuda.driver.device import Device, Stream, gpu_problem
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import FrameControls, FrameInput, InputPlanes
from foveate.cuda.pixels.pixels import Pixels, allocate_state
from foveate.cuda.pixels.staging import Staging
from foveate.cuda.query import pixel_attributes
from foveate.cuda.state import GRID_CHANNELS, KEYFRAMES, PixelState
from foveate.pipeline.attributes.embedder import PIXEL_ATTRIBUTES
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.pyramid import State, pyramid
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.keyframes import Keyframe


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Decide once, before any test runs."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if not marked or config.getoption("--gpu-required"):
        return
    problem = gpu_problem()
    if problem:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=problem))


@pytest.fixture(scope="session")
def device() -> Iterator[Device]:
    """The first GPU, held by the thread that runs the tests."""
    with Device() as device:
        yield device


@pytest.fixture
def stream(device: Device) -> Stream:
    """A stream to work on."""
    return device.stream()


@pytest.fixture
def memory(device: Device) -> Iterator[Memory]:
    """Device memory that is given back after the test, in which every kernel must have succeeded."""
    memory = Memory(device)
    yield memory
    device.synchronize()
    memory.free()


class Feeder:
    """Feeds host frames of one kind to Pixels, one by one, without a graph."""

    def __init__(self, device: Device, memory: Memory, stream: Stream, frame: Frame, settings: Settings) -> None:
        geometry = Geometry(frame.width, frame.height)
        self.pixels = Pixels(device, geometry, frame.colour, frame.subsampled, settings, stream)
        self._staging = Staging(device, memory, frame, stream)
        self._stream = stream
        self._count = 0

    def feed(self, frame: Frame, feedback: bool = False) -> None:
        """Bring the frame over and do all pixel work on it."""
        planes = self._staging.upload(frame, 0, self._stream)
        kind = Keyframe.NONE if self._count else Keyframe.FIRST
        self.pixels.input.write(0, planes, self._count, kind, frame.discontinuity, FrameControls(feedback), None)
        self.pixels.enqueue(0, self._stream)
        self.pixels.layers.enqueue(self._stream)
        self._stream.synchronize()
        self._count += 1


@pytest.fixture
def feeder(device: Device, memory: Memory, stream: Stream) -> Iterator[type[Feeder]]:
    """Makes Feeders whose pixels are freed after the test: ``feeder(frame, settings)``."""
    made: list[Feeder] = []

    def make(frame: Frame, settings: Settings | None = None) -> Feeder:
        made.append(Feeder(device, memory, stream, frame, settings or Settings()))
        return made[-1]

    yield make  # type: ignore[misc]
    device.synchronize()
    for one in made:
        one.pixels.free()


class HostDriver(ModuleType):
    """pycuda.driver, whose device memory is the host's."""

    Error = type("Error", (Exception,), {})
    MemoryError = type("MemoryError", (Error,), {})

    _sizes: ClassVar[dict[int, int]] = {}  # of the allocations that were not freed, by address

    @classmethod
    def held(cls) -> int:
        """Bytes that are allocated."""
        return sum(cls._sizes.values())

    class _Block:
        def __init__(self, size: int) -> None:
            self._bytes = np.empty(size, np.uint8)
            HostDriver._sizes[int(self)] = size

        def __int__(self) -> int:
            return int(self._bytes.ctypes.data)

        def free(self) -> None:
            self._bytes[:] = 0xA5  # whoever reads it later shall notice
            del HostDriver._sizes[int(self)]

    class _Pinned(np.ndarray[Any, Any]):
        def free(self) -> None:
            self.view(np.uint8)[...] = 0xA5

    def mem_alloc(self, size: int) -> _Block:
        return self._Block(size)

    def pagelocked_zeros(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        pinned = self._Pinned(shape, dtype)
        pinned.view(np.ndarray)[...] = np.zeros((), dtype)
        return pinned.view(np.ndarray)

    @staticmethod
    def memcpy_htod_async(pointer: int, values: NDArray[Any], stream: Any) -> None:
        _bytes_at(pointer, values.nbytes)[:] = np.ascontiguousarray(values).reshape(-1).view(np.uint8)

    @staticmethod
    def memcpy_dtoh_async(values: NDArray[Any], pointer: int, stream: Any) -> None:
        values.reshape(-1).view(np.uint8)[:] = _bytes_at(pointer, values.nbytes)

    @staticmethod
    def memset_d8_async(pointer: int, byte: int, size: int, stream: Any) -> None:
        _bytes_at(pointer, size)[:] = byte


def _bytes_at(pointer: int, size: int) -> NDArray[np.uint8]:
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(pointer))


class NoDevice:
    """Stands in for Device, Stream and Event, where nothing waits."""

    handle = 0

    def __init__(self, index: int = 0) -> None: ...

    def __enter__(self) -> NoDevice:
        return self

    def __exit__(self, *error: object) -> None: ...

    def errors(self) -> NoDevice:
        return self

    def stream(self) -> NoDevice:
        return self

    def synchronize(self) -> None: ...

    def record(self, handle: int) -> None: ...

    def await_it(self) -> None: ...

    def free(self) -> None: ...


class PixelsOfCpu:
    """Stands in for Pixels, and for the Staging that brings it frames."""

    brought: Frame
    latest: State
    stack = None

    def __init__(
        self, device: Any, geometry: Geometry, colour: Colour, subsampled: bool, settings: Settings, stream: Any
    ) -> None:
        self._memory = Memory(device)
        self.state = allocate_state(self._memory, geometry, colour, subsampled, stream)
        self._interval = Feedback()
        updates = upload(self._frames(), settings.change, self._interval)
        self._states = pyramid(updates, plan_stream(settings), 1)
        self.input = FrameInput(self._memory, stream)
        self.layers = SimpleNamespace(enqueue=lambda stream: None)

    def _frames(self) -> Iterator[Frame]:
        while True:
            yield PixelsOfCpu.brought

    def enqueue(self, slot: int, stream: Any) -> None:
        self.input.upload(slot, stream)
        record = self.input.on_device.download(stream)
        self._interval.keyframe_interval = int(record["interval"]) or None
        PixelsOfCpu.latest = state = next(self._states)
        kind = KEYFRAMES[int(record["keyframe"])]
        leave(
            self.state, state if kind is None else replace(state, update=replace(state.update, keyframe=kind)), stream
        )

    def free(self) -> None:
        self._memory.free()


class AttributesOfCpu:
    """Stands in for Attributes."""

    def __init__(self, device: Any, memory: Memory, pixels: PixelState, found: DeviceArray, stream: Any) -> None:
        self._found = found

    def enqueue(self, stream: Any) -> None:
        for index, name in PIXEL_ATTRIBUTES.items():
            self._found.part(index).upload(PixelsOfCpu.latest.grid[name], stream)


class BackgroundOfCpu:
    """Stands in for BackgroundModel."""

    def __init__(self, device: Any, memory: Memory, pixels: PixelState, stream: Any) -> None:
        self.maps = memory.array("background", (2, *pixels.geometry.grid), np.float32, stream)

    def enqueue(self, index: int, stream: Any) -> None:
        assert index == PixelsOfCpu.brought.index
        grid = PixelsOfCpu.latest.grid
        self.maps.upload(np.stack([grid["frame_difference"], grid["foreground"]]), stream)


def leave(pixels: PixelState, state: State, stream: Any) -> None:
    """Fill the device's arrays with what a State of the CPU engine holds."""
    update = state.update
    for plane, pyramid_of in zip(pixels.planes, state.levels.planes, strict=True):
        for level, values in zip(plane.levels, (pyramid_of.pixels, *pyramid_of.coarse), strict=True):
            level.upload(values, stream)
    pixels.errors.upload(np.stack(state.errors), stream)
    pixels.channels.upload(np.stack([state.grid[name] for name in GRID_CHANNELS]), stream)
    pixels.changed.upload(update.changed.astype(np.uint8), stream)
    pixels.written.upload(update.written.astype(np.uint8), stream)
    frame = pixels.frame.download(stream)
    frame["keyframe"], frame["new_scene"] = KEYFRAMES.index(update.keyframe), update.new_scene
    frame["changed_count"], frame["dirty_count"] = update.changed.sum(), update.written.sum()
    frame["moving"] = not update.new_scene and update.changed.any()
    pixels.frame.upload(frame, stream)


@pytest.fixture(params=["stand-in", pytest.param("card", marks=pytest.mark.gpu)])
def card(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether there is a card; else all that needs one is stood in for."""
    if request.param == "card":
        return True
    driver, package = HostDriver("pycuda.driver"), ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setattr(engine, "Device", NoDevice)
    monkeypatch.setattr(format_session, "Event", NoDevice)
    monkeypatch.setattr(format_session, "Pixels", PixelsOfCpu)
    monkeypatch.setattr(format_session, "Staging", lambda *_: SimpleNamespace(upload=bring))
    monkeypatch.setattr(format_session, "GraphCapture", lambda: SimpleNamespace(captured=lambda *_: None))
    monkeypatch.setattr(pixel_attributes, "Attributes", AttributesOfCpu)
    monkeypatch.setattr(pixel_attributes, "BackgroundModel", BackgroundOfCpu)
    monkeypatch.setattr(host_selector, "GridLayers", lambda *_: SimpleNamespace(enqueue=lambda stream: None))
    return False


def bring(frame: Frame, *_: Any) -> InputPlanes:
    PixelsOfCpu.brought = frame
    return InputPlanes((0, 0, 0), (0, 0, 0), (0, 0, 0))
