"""A query's Program on the device: uploads, and launches of relevance.cu and relevance_at.cu."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program, struct
from foveate.cuda.driver.textures import Texture
from foveate.cuda.pixels.layout import place_of
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.geometry import CELL, Geometry
from foveate.pipeline.query.program import COEFFICIENTS, INPUTS
from foveate.pipeline.query.program import Program as Query

_THREADS, _POINT_THREADS = 128, 64
_TERMS: Final[np.dtype[Any]] = np.dtype(
    [
        *((name, np.uint64) for name in ("weights", "biases", "query", "wish")),
        *((name, np.int32) for name in ("terms", "queries", "sigmoid", "only_unwanted")),
    ],
    align=True,
)
"""struct Terms of relevance.cuh."""


class Relevance:
    """How relevant the places of frames of one size are to the queries of one Program at a time."""

    def __init__(self, device: Device, geometry: Geometry) -> None:
        """Without queries, until ``ask``."""
        self._geometry = geometry
        self._memory = Memory(device)
        self._room = 0  # terms, and so queries
        self._terms = np.zeros((), _TERMS)
        folder = Path(__file__).parent
        self._everywhere, self._at = (
            Program(folder / f"{name}.cu", device.architecture).kernel(name) for name in ("relevance", "relevance_at")
        )

    @property
    def queries(self) -> int:
        """How many are asked."""
        return int(self._terms["queries"])

    def ask(self, program: Query, stream: Stream) -> None:
        """Upload ``program``, and wait: what was enqueued before is done. Raises EngineError where the card is full."""
        count = len(program.biases)
        if count > self._room:
            stream.synchronize()
            self._memory.free()
            self._room = count
            self._arrays = {
                name: self._memory.array(f"queries' {name}", shape, kind, stream)
                for name, shape, kind in (
                    ("weights", (count, INPUTS), np.float32),
                    ("biases", (count,), np.float32),
                    ("query", (count,), np.int32),
                    ("wish", (count,), np.float32),
                )
            }
        wish = [-phrase.weight if phrase.negative else phrase.weight for phrase in program.phrases]
        values = {"weights": program.weights, "biases": program.biases, "query": program.query, "wish": wish}
        for name, given in values.items():
            self._arrays[name].upload(_filled(given, self._arrays[name]), stream)
            self._terms[name] = self._arrays[name].pointer
        self._terms["terms"], self._terms["queries"] = count, len(wish)
        self._terms["sigmoid"] = program.activation == "sigmoid"
        self._terms["only_unwanted"] = all(value < 0 for value in wish)

    def enqueue(
        self,
        coefficients: DeviceArray,
        participation: DeviceArray,
        stream: Stream,
        maps: DeviceArray | None = None,
    ) -> None:
        """``participation``, float32[grid], from the embedding channels, float32[COEFFICIENTS, grid].

        ``maps`` takes the relevance to each query, float32[queries, grid]. Raises ValueError for other shapes, and
        RuntimeError where nothing was asked yet.
        """
        grid = self._geometry.grid
        _check("coefficients", coefficients, (COEFFICIENTS, *grid))
        _check("participation", participation, grid)
        if maps is not None:
            _check("maps", maps, (self.queries, *grid))
        self._everywhere.launch(
            stream,
            -(-grid[0] * grid[1] // _THREADS),
            _THREADS,
            struct(
                terms=(_TERMS, self._asked()),
                coefficients=(np.uint64, coefficients.pointer),
                participation=(np.uint64, participation.pointer),
                maps=(np.uint64, maps.pointer if maps else 0),
                rows=(np.int32, grid[0]),
                columns=(np.int32, grid[1]),
                across=(np.float32, CELL / self._geometry.width),
                down=(np.float32, CELL / self._geometry.height),
            ),
        )

    def enqueue_at(
        self, stack: Texture, points: DeviceArray, participation: DeviceArray, values: DeviceArray, stream: Stream
    ) -> None:
        """``participation`` float32[K] and relevance ``values`` float32[K, queries] at ``points`` float32[K, 2].

        Points are x and y in [0, 1] of the padded picture; the embedding channels are read from ``stack``. Raises
        ValueError for other shapes, and RuntimeError where nothing was asked yet.
        """
        count = points.shape[0]
        _check("points", points, (count, 2))
        _check("participation", participation, (count,))
        _check("values", values, (count, self.queries))
        rows, columns = self._geometry.level(0)
        self._at.launch(
            stream,
            -(-count // _POINT_THREADS),
            _POINT_THREADS,
            struct(
                terms=(_TERMS, self._asked()),
                texture=(np.uint64, stack.texture),
                points=(np.uint64, points.pointer),
                participation=(np.uint64, participation.pointer),
                values=(np.uint64, values.pointer),
                count=(np.int32, count),
                layer=(np.int32, place_of(f"{EMBEDDING}0")[0]),
                level=(np.float32, stack.levels - 1),
                across=(np.float32, columns / self._geometry.width),
                down=(np.float32, rows / self._geometry.height),
            ),
        )

    def free(self) -> None:
        """Give the memory back. Nothing enqueued may still run."""
        self._memory.free()
        self._room = 0

    def _asked(self) -> NDArray[np.void]:
        if not self._room:
            raise RuntimeError("a program must be asked first")
        return self._terms


def _filled(values: Any, array: DeviceArray) -> NDArray[Any]:
    """``values`` at the start of an array of the size of ``array``."""
    whole = np.zeros(array.shape, array.dtype)
    whole[: len(values)] = values
    return whole


def _check(name: str, array: DeviceArray, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != np.float32:
        raise ValueError(f"{name} must be float32{list(shape)}, got {array.dtype}{list(array.shape)}")
