"""Superpixels of the Grid on keyframes: launch of clusters.cu."""

from math import floor, log2
from pathlib import Path

import numpy as np

from foveate.cuda.cascade.arrays import MAPS, Arrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cascade.clusters import place_unit, seeds
from foveate.pipeline.colour import matrix_of

_GREATEST_LAB = 256.0


class Clusters:
    """Writes cluster_id, cluster_distance and cluster_size; the CPU's is pipeline.cascade.clusters.cluster."""

    def __init__(self, device: Device, memory: Memory, pixels: PixelState, arrays: Arrays, stream: Stream) -> None:
        """Raises EngineError where the card is full."""
        rows, columns = pixels.geometry.grid
        lattice = np.asarray(seeds(pixels.geometry.grid), np.int32)
        places = memory.array("seeds", lattice.shape, np.int32, stream)
        places.upload(lattice, stream)
        matrix, offsets = matrix_of(pixels.colour)
        unit = place_unit((rows, columns))
        greatest = max(_GREATEST_LAB, max(rows, columns) * unit)
        maps = {name: [arrays.warped(name).part(turn) for turn in range(2)] for name in MAPS}
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("clusters")
        self._parameters = program.parameters(
            "Clusters",
            frame=pixels.frame,
            cascade=arrays.cascade,
            colours=pixels.colours,
            features=memory.array("features", (5, rows, columns), np.float32, stream),
            distance=maps["cluster_distance"],
            label=maps["cluster_id"],
            size=maps["cluster_size"],
            seeds=places,
            count=len(lattice),
            rows=rows,
            columns=columns,
            fixed=2.0 ** floor(log2(2**31 / (rows * columns * greatest))),
            unit=unit,
            half_diagonal=np.hypot(rows, columns) / 2,
            matrix=matrix.ravel(),
            shift=-matrix @ offsets,
        )

    def enqueue(self, stream: Stream) -> None:
        """On keyframes only; after Carry, and before the strategy concludes the frame."""
        self._kernel.launch(stream, self._kernel.cluster, self._parameters)
