"""The GPU for tests: skipped without a card, or failed with ``--gpu-required``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foveate.cuda.device import Device, Stream, gpu_problem
from foveate.cuda.frames import empty_input
from foveate.cuda.memory import Memory
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.pixels.staging import Staging
from foveate.pipeline.frames import Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import Settings


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
        self._staging = Staging(device, memory, frame, 1, stream)
        self._stream = stream
        self._count = 0

    def feed(self, frame: Frame, fed: bool = False) -> None:
        """Bring the frame over and do all pixel work on it."""
        given = empty_input()
        self._staging.bring(frame, 0, given, self._stream)
        given["number"], given["anew"] = self._count, int(self._count == 0)
        given["discontinuity"], given["fed"] = frame.discontinuity, fed
        self.pixels.frame.upload(given, self._stream)
        self.pixels.enqueue(self._stream)
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
