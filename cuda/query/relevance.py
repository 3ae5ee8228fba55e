"""Query terms on the device: uploads them, and launches relevance.cu and relevance_at.cu."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.structs import layouts
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.pixels.layout import place_of
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.geometry import CELL, Geometry
from foveate.pipeline.query.terms import COEFFICIENTS, INPUTS, QueryTerms

_TERMS: Final = layouts(Path(__file__).with_name("relevance.cuh"))["Terms"]


class Relevance:
    """Relevance to queries of the cells, or of any points, of frames of one size."""

    def __init__(self, device: Device, geometry: Geometry) -> None:
        """There are no queries until ``upload``."""
        self._geometry = geometry
        self._memory = Memory(device)
        self._capacity = 0  # in terms
        self._terms = np.zeros((), _TERMS)
        folder = Path(__file__).parent
        self._programs = [Program(folder / f"{name}.cu", device.architecture) for name in ("relevance", "relevance_at")]
        everywhere, at = self._programs
        self._everywhere, self._at = everywhere.kernel("relevance"), at.kernel("relevance_at")

    @property
    def queries(self) -> int:
        """Number of queries."""
        return int(self._terms["queries"])

    def upload(self, terms: QueryTerms, stream: Stream) -> None:
        """Upload ``terms``, and wait for work enqueued before. Raises EngineError if the device is out of memory."""
        count = len(terms.biases)
        if count > self._capacity:
            stream.synchronize()
            self._memory.free()
            self._capacity = count
            self._arrays = {
                name: self._memory.array(f"queries' {name}", shape, kind, stream)
                for name, shape, kind in (
                    ("weights", (count, INPUTS), np.float32),
                    ("biases", (count,), np.float32),
                    ("query", (count,), np.int32),
                    ("signed_weight", (count,), np.float32),
                )
            }
        signed = [-phrase.weight if phrase.negative else phrase.weight for phrase in terms.phrases]
        values = {"weights": terms.weights, "biases": terms.biases, "query": terms.query, "signed_weight": signed}
        for name, given in values.items():
            self._arrays[name].upload(_filled(given, self._arrays[name]), stream)
            self._terms[name] = self._arrays[name].pointer
        self._terms["terms"], self._terms["queries"] = count, len(signed)
        self._terms["sigmoid"] = terms.activation == "sigmoid"
        self._terms["only_negative"] = all(value < 0 for value in signed)

    def enqueue(
        self,
        coefficients: DeviceArray,
        combined: DeviceArray,
        stream: Stream,
        maps: DeviceArray | None = None,
    ) -> None:
        """Enqueue relevance to all queries together, ``combined`` float32[grid].

        ``coefficients`` are the embedding channels, float32[COEFFICIENTS, grid]. ``maps`` receives the relevance to
        each query, float32[queries, grid]. Raises ValueError for other shapes, and RuntimeError before the first
        ``upload``.
        """
        grid = self._geometry.grid
        _check("coefficients", coefficients, (COEFFICIENTS, *grid))
        _check("combined", combined, grid)
        if maps is not None:
            _check("maps", maps, (self.queries, *grid))
        self._everywhere.launch(
            stream,
            -(-grid[0] * grid[1] // self._everywhere.threads),
            self._programs[0].parameters(
                "Relevance",
                terms=self._uploaded(),
                coefficients=coefficients,
                combined=combined,
                maps=maps,
                rows=grid[0],
                columns=grid[1],
                across=CELL / self._geometry.width,
                down=CELL / self._geometry.height,
            ),
        )

    def enqueue_at(
        self, stack: TextureArray, points: DeviceArray, combined: DeviceArray, values: DeviceArray, stream: Stream
    ) -> None:
        """Enqueue relevance ``combined`` float32[K] and ``values`` float32[K, queries] at ``points`` float32[K, 2].

        Points are x and y in [0, 1] of the padded picture; the embedding channels are read from ``stack``. Raises
        ValueError for other shapes, and RuntimeError before the first ``upload``.
        """
        count = points.shape[0]
        _check("points", points, (count, 2))
        _check("combined", combined, (count,))
        _check("values", values, (count, self.queries))
        rows, columns = self._geometry.level(0)
        self._at.launch(
            stream,
            -(-count // self._at.threads),
            self._programs[1].parameters(
                "RelevanceAt",
                terms=self._uploaded(),
                texture=stack.texture,
                points=points,
                combined=combined,
                values=values,
                count=count,
                layer=place_of(f"{EMBEDDING}0")[0],
                level=stack.levels - 1,
                across=columns / self._geometry.width,
                down=rows / self._geometry.height,
            ),
        )

    def free(self) -> None:
        """Free the memory. Nothing enqueued may still run."""
        self._memory.free()
        self._capacity = 0

    def _uploaded(self) -> NDArray[np.void]:
        if not self._capacity:
            raise RuntimeError("query terms must be uploaded first")
        return self._terms


def _filled(values: Any, array: DeviceArray) -> NDArray[Any]:
    """``values``, padded with zeros to the shape of ``array``."""
    whole = np.zeros(array.shape, array.dtype)
    whole[: len(values)] = values
    return whole


def _check(name: str, array: DeviceArray, shape: tuple[int, ...]) -> None:
    if array.shape != shape or array.dtype != np.float32:
        raise ValueError(f"{name} must be float32{list(shape)}, got {array.dtype}{list(array.shape)}")
