"""The GPU for tests: skipped without a card, or failed with ``--gpu-required``."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foveate.cuda.device import Device, Stream, gpu_problem
from foveate.cuda.memory import Memory


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
