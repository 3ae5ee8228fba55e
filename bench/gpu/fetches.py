"""What reading channels costs on a card, by how they are stored and in which order the points come, at 1080p:

python -m foveate.bench.gpu.fetches --out gpu_fetches.json

``packed``: four channels to a texel of a layered texture, as Foveate keeps them; ``single``: one channel to a texel;
``planar`` and ``interleaved``: half floats in linear memory, filtered by the program. All are read bilinearly at the
same points, and each kernel's sums are checked.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import launch_times
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.driver.textures import TextureArray
from foveate.pipeline.geometry import CELL

_LAUNCHES: Final = 60
_WARM: Final = 10
_DELAY: Final = 1 << 27  # bytes to fill: time for the host to enqueue what is measured
_TOKENS: Final = 273
_BLOCK: Final = 8  # pixels: a warp's points lie in half of such a block
_SEED: Final = 4
_CLOSE: Final = 0.16
"""Of a sum. Points are rounded to 24 bits, so the program's filter is off by 2e-4 of a step between neighbours; that of
the texture, whose weights have 8 bits, by at most 1/256 of each of 40 channels."""

Points = NDArray[np.float32]


class Layout(NamedTuple):
    """``name`` is that of the kernels; ``fetches`` are read of ``stored`` layers, or channels in linear memory."""

    name: str
    fetches: int
    stored: int
    components: int  # of a texel; 0: linear memory

    @property
    def channels(self) -> int:
        """Channels that are read."""
        return self.fetches * max(1, self.components)


LAYOUTS: Final = (
    Layout("packed", 10, 10, 4),
    Layout("packed", 4, 10, 4),
    Layout("single", 13, 40, 1),
    Layout("single", 40, 40, 1),
    Layout("planar", 13, 40, 0),
    Layout("planar", 40, 40, 0),
    Layout("interleaved", 13, 40, 0),
    Layout("interleaved", 40, 40, 0),
)


def fetches(
    out: Out = None,
) -> None:
    """Measure the device time of reading 13, 16 and 40 channels, by layout and order of the points."""
    record = new_record("gpu_fetches", out, width=WIDTH, height=HEIGHT)
    with Device() as device:
        record["card"] = device.name
        for layout in LAYOUTS:
            for case in _cases(device, layout):
                record["cases"].append(case)
                say(f"{case['name']}: {case['device_us']:.1f} us, {case['ns_per_point']:.3f} ns a point")
    hand_out(record, out)


def orders() -> dict[str, Points]:
    """Points by their order: float32[K, 2], x and y in [0, 1], at centres of pixels.

    ``rows``: the whole picture, row by row; ``blocks``: the same in blocks of 8x8; ``random``: the same, shuffled;
    ``tokens``: those of 273 random cells, one cell after the other.
    """
    y, x = (axis.ravel() for axis in np.indices((HEIGHT, WIDTH)))
    blocks = np.lexsort((x, y, x // _BLOCK, y // _BLOCK))
    generator = np.random.default_rng(_SEED)
    shuffled = generator.permutation(len(x))
    cells = generator.choice(HEIGHT // CELL * (WIDTH // CELL), _TOKENS, replace=False)
    row, column = (axis.ravel() for axis in np.indices((CELL, CELL)))
    tops, lefts = (part[:, None] * CELL for part in np.divmod(cells, WIDTH // CELL))
    return {
        "rows": _points(x, y),
        "blocks": _points(x[blocks], y[blocks]),
        "random": _points(x[shuffled], y[shuffled]),
        "tokens": _points((lefts + column).ravel(), (tops + row).ravel()),
    }


def _points(x: NDArray[np.intp], y: NDArray[np.intp]) -> Points:
    return np.stack([(x + 0.5) / WIDTH, (y + 0.5) / HEIGHT], axis=-1).astype(np.float32)


def expected(points: Points, channels: int) -> NDArray[np.float64]:
    """The sums of what the fill kernels write, at the pixels of ``points``."""
    x, y = np.floor(points[:, 0] * WIDTH).astype(int), np.floor(points[:, 1] * HEIGHT).astype(int)
    return np.sum([((channel * 37 + y * 11 + x * 5) & 63) / 64 for channel in range(channels)], axis=0)


def _cases(device: Device, layout: Layout) -> Iterator[dict[str, Any]]:
    stream, memory = device.stream(), Memory(device)
    program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
    try:
        with _source(device, layout, program, memory, stream) as source:
            delay = memory.array("delay", (_DELAY,), np.uint8, stream)
            for order, points in orders().items():
                given = memory.array(f"points, {order}", points.shape, np.float32, stream)
                given.upload(points, stream)
                sums = memory.array(f"sums, {order}", (len(points),), np.float32, stream)
                launch = _launcher(program, layout, source, given, sums, stream)
                launch()
                _check(layout, points, sums.download(stream))
                times = launch_times(device, stream, lambda: delay.fill(0, stream), launch, _WARM + _LAUNCHES)[_WARM:]
                yield _case(layout, order, len(points), times)
    finally:
        device.synchronize()
        memory.free()


def _case(layout: Layout, order: str, count: int, times: Sequence[float]) -> dict[str, Any]:
    middle = float(np.median(times))
    return {
        "name": f"{layout.name}, {layout.channels} channels in {layout.fetches} reads, {order}",
        "layout": layout.name,
        "channels": layout.channels,
        "fetches": layout.fetches,
        "order": order,
        "points": count,
        "device_ms": middle,
        "device_us": 1000 * middle,
        "ns_per_point": 1e6 * middle / count,
        "samples": {"device_ms": list(times)},
    }


@contextmanager
def _source(device: Device, layout: Layout, program: Program, memory: Memory, stream: Stream) -> Iterator[int]:
    """A texture object, or a pointer, to filled channels; freed at the end."""
    shape = (HEIGHT, WIDTH)
    if not layout.components:
        held = memory.array("channels", (layout.stored, *shape), np.uint16, stream)
        _fill(program, layout, held.pointer, stream)
        yield held.pointer
        return
    texture = TextureArray(device, "channels", shape, layout.stored, 1, layout.components)
    try:
        _fill(program, layout, texture.surfaces[0], stream)
        yield texture.texture
    finally:
        device.synchronize()
        texture.free()


def _fill(program: Program, layout: Layout, target: int, stream: Stream) -> None:
    parameters = program.parameters(
        "Fill",
        target=target,
        layers=layout.stored,
        rows=HEIGHT,
        columns=WIDTH,
    )
    kernel = program.kernel(f"fill_{layout.name}")
    kernel.launch(stream, (-(-WIDTH // kernel.threads), HEIGHT, layout.stored), parameters)


def _launcher(
    program: Program, layout: Layout, source: int, points: DeviceArray, sums: DeviceArray, stream: Stream
) -> Callable[[], None]:
    count = points.shape[0]
    parameters = program.parameters(
        "Fetch",
        source=source,
        points=points,
        sums=sums,
        count=count,
        fetches=layout.fetches,
        channels=layout.stored,
        rows=HEIGHT,
        columns=WIDTH,
    )
    kernel = program.kernel(f"fetch_{layout.name}")
    return lambda: kernel.launch(stream, -(-count // kernel.threads), parameters)


def _check(layout: Layout, points: Points, sums: NDArray[np.float32]) -> None:
    wrong = float(np.abs(sums - expected(points, layout.channels)).max())
    if not wrong <= _CLOSE:
        raise RedCheckError(f"{layout.name}: a sum is off by {wrong:g}")


if __name__ == "__main__":
    run_module(fetches)
