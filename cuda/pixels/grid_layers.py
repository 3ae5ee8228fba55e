"""The channels that exist on the Grid alone, in the channel stack: launch of grid_layers.cu."""

from collections.abc import Mapping
from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.pixels.layout import GRIDDED, SAMPLED, place_of
from foveate.cuda.state import PixelState

_FROM = {"boundary": "cluster_id"}


class GridLayers:
    """Writes the Grid's channels to the stack's last level, after the Cascade."""

    def __init__(
        self,
        device: Device,
        state: PixelState,
        stack: TextureArray,
        channels: Mapping[str, DeviceArray],
        turn: int,
    ) -> None:
        """``channels`` are float32[grid], or float32[2, grid] of which the int32 at ``turn`` says which one is current.

        Missing channels are zero; layers with missing channels alone are written now, once.
        """
        rows, columns = state.geometry.grid
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("grid_layers")
        own = {**channels, "edge_distance": state.channel("edge_distance")}
        found = [own.get(_FROM.get(name, name)) for name in GRIDDED]
        first, last = len(SAMPLED) // 4, stack.levels - 1
        used = max(at for at, array in enumerate(found) if array) // 4 + 1
        for layer in range(first + used, stack.layers):
            stack.clear(last, layer)
        text = own.get("text")
        text_layer, component = place_of("text")
        assert component == 1, "grid_layers.cu writes the second"
        self._grid = -(-rows * columns // self._kernel.threads), used + (text is not None)
        self._parameters = program.parameters(
            "GridLayers",
            state=state.frame,
            channels=found,
            turns=[bool(array and len(array.shape) == 3) for array in found],
            turn=turn,
            boundary=GRIDDED.index("boundary"),
            surface=stack.surfaces[-1],
            first=first,
            text=text,
            text_layer=text_layer,
            rows=rows,
            columns=columns,
        )

    def enqueue(self, stream: Stream) -> None:
        """Write this frame's maps; on unchanged frames the last ones stay."""
        self._kernel.launch(stream, self._grid, self._parameters)
