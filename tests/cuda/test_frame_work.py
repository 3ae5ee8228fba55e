"""The kernels of a frame and when graphs are captured, without a card: the real engine on a driver that takes notes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from foveate.cuda import engine, format_session
from foveate.cuda.cascade import carry, clusters, emit, flow, foveated, rate_distortion, reader, top_k, upper
from foveate.cuda.driver import graph
from foveate.cuda.driver.structs import constants, layouts, parameters
from foveate.cuda.pixels import (
    change,
    channels,
    edge_distance,
    grid_layers,
    layers,
    leaf_errors,
    levels,
    pixels,
    staging,
)
from foveate.cuda.query import attributes, background, relevance
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.frames import Frame
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings
from tests.cuda.conftest import HostDriver, NoDevice

LAUNCHING = (
    *(carry, clusters, emit, flow, foveated, rate_distortion, reader, top_k, upper),
    *(change, channels, edge_distance, grid_layers, layers, leaf_errors, levels, staging),
    *(attributes, background, relevance),
)
BEFORE = ("change", "write_tiles")
CHANNELS = ("leaf_errors", "local_channels", "edge_distance", "write_layers")
ATTRIBUTES = ("attributes", "text", "update_background", "without_light", "reset_background")
CASES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "frame memory": (
        {},
        (*BEFORE, "flow", *CHANNELS, "carry", "clusters", "allocate", "allocate", "emit", "grid_layers"),
    ),
    "stream memory": (
        {"allocation": {"memory": "stream"}},
        (*BEFORE, "compare", "flow", *CHANNELS, "carry", "clusters", "allocate", "allocate", "emit", "grid_layers"),
    ),
    "tokens above LOD 4": (
        {"budget": 1},
        (
            *(*BEFORE, "flow", *CHANNELS, "carry", "upper", "carry_upper", "sum_upper", "clusters"),
            *("allocate_upper", "allocate_upper", "emit_upper", "grid_layers"),
        ),
    ),
    "three stages, bicubic": (
        {"allocation": {"strategy": "three_stage", "interpolation": "bicubic"}},
        (*BEFORE, "flow", *CHANNELS, "carry", "clusters", "top_k", "emit_cubic", "grid_layers"),
    ),
    "foveated": (
        {"allocation": {"strategy": "foveated"}},
        (
            *(*BEFORE, "flow", *CHANNELS, "carry", "clusters"),
            *("prepare", "sort_nodes", "grow_trees", "foveated", "emit", "grid_layers"),
        ),
    ),
    "a query": (
        {"query": ("dark",), "cache": {"enabled": False}},
        (
            *(*BEFORE, *CHANNELS, *ATTRIBUTES, "relevance", "carry", "clusters"),
            *("allocate", "allocate", "emit", "grid_layers"),
        ),
    ),
}


class Kernel:
    """Notes its launches."""

    cluster = 1

    def __init__(self, name: str, threads: int, notes: list[str]) -> None:
        self.name, self.threads, self._notes = name, threads, notes

    def launch(self, stream: Any, grid: Any, parameters: Any, threads: int | None = None) -> None:
        self._notes.append(self.name)


class TextureArray:
    """Stands in for a texture."""

    texture, nbytes = 1, 0

    def __init__(self, device: Any, name: str, shape: Any, layers: int, levels: int) -> None:
        self.name, self.layers, self.levels, self.surfaces = name, layers, levels, [1] * levels

    def clear(self, level: int, layer: int) -> None: ...

    def free(self) -> None: ...


class NotingDevice(NoDevice):
    """Stands in for Device, and its streams and events."""

    architecture, processors, index = "sm_90", 1, 0

    def event(self) -> NotingDevice:
        return self

    def memory(self) -> tuple[int, int]:
        return 1 << 40, 1 << 40

    def wait_for_event(self, event: Any) -> None: ...


class Graph:
    """Notes when it is captured and launched."""

    def __init__(self, stream: Any, enqueue: Any, notes: list[str]) -> None:
        self._notes = notes
        notes.append("capture")
        enqueue(stream)

    def launch(self, stream: Any) -> None:
        self._notes.append("graph")

    def free(self) -> None:
        self._notes.append("free graph")


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is launched."""
    notes: list[str] = []
    driver, package = HostDriver("pycuda.driver"), ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)

    class Program:
        def __init__(self, path: Path, architecture: str) -> None:
            self._layouts, self.constants = layouts(path), constants(path)

        def kernel(self, name: str, threads: str = "THREADS") -> Kernel:
            return Kernel(name, self.constants[threads], notes)

        def parameters(self, struct: str, /, **values: Any) -> Any:
            return parameters(self._layouts[struct], **values)

    for module in LAUNCHING:
        monkeypatch.setattr(module, "Program", Program)
    monkeypatch.setattr(pixels, "TextureArray", TextureArray)
    monkeypatch.setattr(engine, "Device", NotingDevice)
    monkeypatch.setattr(format_session, "Event", NoDevice)
    monkeypatch.setattr(graph, "Graph", lambda stream, enqueue: Graph(stream, enqueue, notes))
    return notes


def noise(count: int) -> Iterator[Frame]:
    rng = np.random.default_rng(0)
    for index in range(count):
        yield Frame(index, index / 25, rng.integers(0, 256, (300, 700), np.uint8), None)


def run(settings: dict[str, Any], count: int, feedback: Feedback | None = None) -> Iterator[int]:
    """The indices of frames, once they are unpacked."""
    cuda = engine.CudaEngine(plan_stream(Settings.model_validate(settings)), feedback or Feedback())
    for step in cuda.cascade(cuda.pyramid(cuda.upload(noise(count)))):
        yield step.selection.index


def test_captures_that_fail_are_given_up_with_one_warning(
    notes: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After three attempts at each of two slots; another budget makes for new ones."""
    attempts: list[int] = []

    def fails(*_: object) -> None:
        attempts.append(len(notes))
        raise graph.CaptureError("a capture failed: NOT_PERMITTED in this test")

    monkeypatch.setattr(graph, "Graph", fails)
    feedback, kernels = Feedback(), list(CASES["frame memory"][1])
    with caplog.at_level(logging.WARNING, "foveate"):
        for index in run({}, 24, feedback):
            if index == 11:
                assert len(attempts) == 6
                feedback.set_budget(2000)
    assert len(attempts) == 12
    assert notes.count(kernels[0]) == 24 * kernels.count(kernels[0])
    assert [record.getMessage() for record in caplog.records] == [
        "a capture failed: NOT_PERMITTED in this test, 3 times in a row; frames are processed without a CUDA graph, "
        "more slowly"
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_kernels_of_a_frame(case: str, notes: list[str]) -> None:
    settings, kernels = CASES[case]
    assert list(run(settings, 1)) == [0]
    assert tuple(notes) == kernels


def test_the_kernels_of_a_frame_with_a_linear_scorer(notes: list[str], tmp_path: Path) -> None:
    weights = tmp_path / "weights.toml"
    weights.write_text("bias = 0.1\n[weights]\nmotion = 0.5\n")
    settings = {"score": {"scorer": "linear", "weights": str(weights)}, "allocation": {"strategy": "five_stage"}}
    assert list(run(settings, 1)) == [0]
    assert tuple(notes) == (*BEFORE, "flow", *CHANNELS, "carry_linear", "clusters", "top_k", "emit", "grid_layers")


def test_every_slot_has_a_graph_from_the_second_frame_on(notes: list[str]) -> None:
    kernels = list(CASES["frame memory"][1])
    assert list(run({}, 5)) == [0, 1, 2, 3, 4]
    assert notes[:-2] == [*kernels, *["capture", *kernels, "graph"] * 2, "graph", "graph"]
    assert notes[-2:] == ["free graph"] * 2


def test_another_budget_makes_new_graphs(notes: list[str]) -> None:
    feedback = Feedback()
    for index in run({}, 6, feedback):
        if index == 1:
            feedback.set_budget(2000)
    assert notes.count("capture") == notes.count("free graph") == 4


def test_with_queries_nothing_is_captured(notes: list[str]) -> None:
    assert list(run({"query": ("dark",)}, 4)) == [0, 1, 2, 3]
    assert "capture" not in notes
