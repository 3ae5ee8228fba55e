"""Level 0 of a texture from values in device memory: launch of write.cu."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.tensor_views import TensorView
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.textures.boxes import Box

_MOST_ROWS: Final = 16_384  # blocks in y; the kernel takes further rows in turns


class Piece(NamedTuple):
    """Where a box comes from: the place of its first value in the source, and the step from row to row, in values."""

    box: Box
    first: int
    row: int


class Writer:
    """Converts and writes boxes."""

    def __init__(self, device: Device, texture: TextureArray) -> None:
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("write_boxes")
        self._constants = program.constants
        self.most_boxes = program.constants["MOST_BOXES"]
        self._parameters = program.parameters(
            "Write",
            surface=texture.surfaces[0],
            source=None,
            pieces=None,
            layer=0,
            column=0,
            component=0,
            kind=0,
            given=0,
            components=texture.components,
            first_layer=0,
            layers=0,
        )

    def enqueue(self, source: TensorView, pieces: Sequence[Piece], layer: int, stream: Stream) -> None:
        """Write ``source`` [layers, rows, columns, components] to the boxes of layers from ``layer`` on.

        Shapes and boxes are the caller's concern.
        """
        layers, given, struct = source.shape[0], source.shape[3], self._parameters
        struct["source"], struct["kind"] = source.pointer, self._constants[source.dtype.name.upper()]
        struct["layer"], struct["column"], struct["component"] = (source.strides[axis] for axis in (0, 2, 3))
        struct["given"], struct["first_layer"], struct["layers"] = given, layer, layers
        struct["pieces"][: len(pieces)] = [(tuple(box), first, row) for box, first, row in pieces]
        self._kernel.launch(stream, grid_of([piece.box for piece in pieces], layers, self._kernel.threads), struct)


def grid_of(boxes: Sequence[Box], layers: int, threads: int) -> tuple[int, int, int]:
    """Blocks for a thread per texel of the largest box; the third number counts boxes and layers."""
    rows, columns = max(box.rows for box in boxes), max(box.columns for box in boxes)
    return -(-columns // threads), min(rows, _MOST_ROWS), len(boxes) * layers
