"""Writing the dirty tiles and rebuilding their levels: launch of levels.cu."""

from pathlib import Path

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.program import Program
from foveate.cuda.state import PixelState
from foveate.pipeline.cpu.stack import gains_of

_BLOCKS_PER_PROCESSOR = 8  # more would not run at the same time


class Write:
    """Writes the tiles that Change lists."""

    def __init__(
        self, device: Device, state: PixelState, frame: DeviceArray, analysis_level: int, moved: DeviceArray
    ) -> None:
        """``frame`` is the FrameInput on the device; ``moved`` float32 at the analysis level, receives the motion."""
        geometry = state.geometry
        rows, columns = geometry.tiles
        self._blocks = min(rows * columns, _BLOCKS_PER_PROCESSOR * device.processors)
        program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = program.kernel("write_tiles")
        self._parameters = program.parameters(
            "Write",
            input=frame,
            state=state.frame,
            dirty=state.dirty,
            changed=state.changed,
            planes=[plane.pointers for plane in state.planes],
            motion=state.channel("motion"),
            moved=moved,
            inverse_span=1.0 / gains_of(state.colour).span,
            width=geometry.width,
            height=geometry.height,
            tile_rows=rows,
            tile_columns=columns,
            halved=state.subsampled,
            analysis_level=analysis_level,
        )

    def enqueue(self, stream: Stream) -> None:
        """Write the tiles of ``dirty`` into planes, levels and motion."""
        self._kernel.launch(stream, self._blocks, self._parameters)
