"""Queries on the device against pipeline.query.terms, over the Grid and at points of the channel stack."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.pixels.layout import LAYERS, place_of
from foveate.cuda.query.relevance import Relevance
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.encoder import cell_positions
from foveate.pipeline.query.terms import (
    COEFFICIENTS,
    INPUTS,
    Activation,
    QueryTerms,
    combined_relevance,
    query_terms,
    relevance,
)

SUM_ERROR = 1e-5
"""Eighteen products of about one each, added in another order; a sigmoid's slope is at most a quarter."""
HALF_ERROR = 0.02
"""Coefficients of about one as half floats, interpolated by weights of 8 bits: 2**-8 each, weighted by 18 terms."""


def asked(rng: np.random.Generator, queries: list[float], terms: int, activation: Activation) -> QueryTerms:
    """Random terms; a query per weight, unwanted where that is negative."""
    phrases = [Phrase(f"q{i}", abs(weight), weight < 0) for i, weight in enumerate(queries)]
    own = [
        [(rng.normal(0, 0.4, INPUTS).astype(np.float32), float(rng.normal())) for _ in range(1 + i % terms)]
        for i in range(len(queries))
    ]
    return query_terms(phrases, own, activation)


@pytest.fixture
def answer(device: Device, stream: Stream) -> Iterator[Any]:
    """Makes a Relevance for a geometry."""
    made: list[Relevance] = []

    def make(geometry: Geometry) -> Relevance:
        made.append(Relevance(device, geometry))
        return made[-1]

    yield make
    stream.synchronize()
    for each in made:
        each.free()


@pytest.mark.gpu
@pytest.mark.parametrize("activation", ["ramp", "sigmoid"])
@pytest.mark.parametrize("queries", [[1.0], [-1.0], [1.0, 2.0, -0.5, 0.5, -1.0], [0.3 * (i - 40) for i in range(100)]])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (97, 131), (288, 544)])
def test_every_cell(
    height: int, width: int, queries: list[float], activation: Any, answer: Any, memory: Memory, stream: Stream
) -> None:
    rng = np.random.default_rng(len(queries))
    geometry = Geometry(width, height)
    grid = geometry.grid
    coefficients = memory.array("coefficients", (COEFFICIENTS, *grid), np.float32, stream)
    found = memory.array("found", grid, np.float32, stream, fill=0xFF)
    relevant = answer(geometry)
    for terms in (4, 1, 6):  # other terms each time; the second needs less room
        wanted = asked(rng, [weight or 1.0 for weight in queries], terms, activation)
        values = rng.normal(0, 1, coefficients.shape).astype(np.float32)
        coefficients.upload(values, stream)
        maps = memory.array("maps", (len(queries), *grid), np.float32, stream, fill=0xFF)
        relevant.upload(wanted, stream)
        relevant.enqueue(coefficients, found, stream, maps)
        expected = relevance(wanted, np.concatenate([values, cell_positions(geometry)]))
        np.testing.assert_allclose(maps.download(stream), expected, atol=SUM_ERROR)
        combined = combined_relevance(wanted, expected)
        np.testing.assert_allclose(found.download(stream), combined, atol=SUM_ERROR * len(queries))
        found.fill(0xFF, stream)
        relevant.enqueue(coefficients, found, stream)
        np.testing.assert_allclose(found.download(stream), combined, atol=SUM_ERROR * len(queries))


@pytest.mark.gpu
def test_points_of_the_stack(device: Device, answer: Any, memory: Memory, stream: Stream) -> None:
    """Between cells the embedding is interpolated; in the middle of a cell it is the cell's."""
    from foveate.cuda.driver.textures import TextureArray
    from foveate.cuda.pixels.grid_layers import GridLayers

    rng = np.random.default_rng(9)
    geometry = Geometry(500, 330)
    rows, columns = geometry.grid
    stack = TextureArray(device, "stack", geometry.level(2), LAYERS, 3)
    try:
        values = rng.normal(0, 0.5, (COEFFICIENTS, rows, columns)).astype(np.float32)
        arrays = {f"clip{i}": memory.array("clip", (rows, columns), np.float32, stream) for i in range(COEFFICIENTS)}
        for array, value in zip(arrays.values(), values, strict=True):
            array.upload(value, stream)
        state = _state(memory, geometry, stream)
        GridLayers(device, state, stack, arrays, state.frame.pointer).enqueue(stream)
        assert place_of("clip0")[1] == 0
        wanted = asked(rng, [1.0, 0.7, -0.4] * 3 + [1.0], 3, "ramp")
        points = np.concatenate(
            [
                rng.random((200, 2)),
                np.stack([(rng.integers(0, columns, 73) + 0.5) / columns, (rng.integers(0, rows, 73) + 0.5) / rows], 1),
            ]
        ).astype(np.float32)
        at, found, each = (
            memory.array(name, shape, np.float32, stream)
            for name, shape in (("points", (273, 2)), ("found", (273,)), ("each", (273, 10)))
        )
        at.upload(points, stream)
        relevant = answer(geometry)
        relevant.upload(wanted, stream)
        relevant.enqueue_at(stack, at, found, each, stream)
        inputs = np.stack([_interpolated(values, x, y) for x, y in points.tolist()], 1)
        across, down = geometry.level(0)[1] / geometry.width, geometry.level(0)[0] / geometry.height
        places = np.minimum(points.T * np.float32([[across], [down]]), 1)
        expected = relevance(wanted, np.concatenate([inputs, places]).astype(np.float32))
        np.testing.assert_allclose(each.download(stream).T, expected, atol=HALF_ERROR)
        np.testing.assert_allclose(found.download(stream), combined_relevance(wanted, expected), atol=HALF_ERROR)
    finally:
        stream.synchronize()
        stack.free()


def _interpolated(values: np.ndarray[Any, Any], x: float, y: float) -> np.ndarray[Any, Any]:
    """Bilinear between the centres of cells, the edge repeated."""
    rows, columns = values.shape[1:]
    at_y, at_x = np.clip(y * rows - 0.5, 0, rows - 1), np.clip(x * columns - 0.5, 0, columns - 1)
    top, left = int(at_y), int(at_x)
    bottom, right = min(top + 1, rows - 1), min(left + 1, columns - 1)
    down, over = at_y - top, at_x - left
    upper = values[:, top, left] * (1 - over) + values[:, top, right] * over
    lower = values[:, bottom, left] * (1 - over) + values[:, bottom, right] * over
    return np.asarray(upper * (1 - down) + lower * down)


def _state(memory: Memory, geometry: Geometry, stream: Stream) -> Any:
    """As much of a PixelState as GridLayers reads: a frame that does not rest, in turn 0, and an edge distance."""
    from types import SimpleNamespace

    from foveate.cuda.state import FRAME_STATE

    frame = memory.array("frame", (), FRAME_STATE, stream)
    distance = memory.array("edge_distance", geometry.grid, np.float32, stream)
    return SimpleNamespace(geometry=geometry, frame=frame, channel=lambda name: distance)


@pytest.mark.gpu
def test_wrong_shapes_and_nothing_asked(answer: Any, memory: Memory, stream: Stream) -> None:
    geometry = Geometry(64, 32)
    relevant = answer(geometry)
    right = memory.array("coefficients", (COEFFICIENTS, *geometry.grid), np.float32, stream)
    found = memory.array("found", geometry.grid, np.float32, stream)
    with pytest.raises(RuntimeError, match="query terms must be uploaded first"):
        relevant.enqueue(right, found, stream)
    for coefficients, participating in ((found, found), (right, right)):
        with pytest.raises(ValueError, match="must be float32"):
            relevant.enqueue(coefficients, participating, stream)
