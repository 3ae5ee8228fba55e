"""Device time of queries at 1080p: of the whole Grid, and of 273 points read from the channel stack.

python -m foveate.bench.gpu.relevance --out gpu_relevance.json
"""

import time
from collections.abc import Callable
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import launch_times, percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.pixels.layout import LAYERS, place_of
from foveate.cuda.query.relevance import Relevance
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.encoder import cell_positions
from foveate.pipeline.query.terms import COEFFICIENTS, INPUTS, QueryTerms, combined_relevance, query_terms, relevance

_POINTS: Final = 273
_TERMS: Final = 4  # of a query: those of an image-text encoder
_LAUNCHES: Final = 200
_DELAY: Final = 1 << 28  # bytes to fill: time for the host to enqueue what is measured
_CLOSE: Final = 1e-4


def gpu_relevance(
    out: Out = None,
    queries: Annotated[tuple[int, ...], arg(metavar="N ...", help="Numbers of queries.")] = (1, 2, 10, 100),
) -> None:
    """Measure queries of random terms over random coefficients, checked against the CPU's."""
    record = new_record("gpu_relevance", out, width=WIDTH, height=HEIGHT, points=_POINTS, terms_per_query=_TERMS)
    with Device() as device:
        record["card"] = device.name
        for count in queries:
            case = _case(device, count)
            record["cases"].append(case)
            say(
                f"{count} queries: Grid {case['grid_ms']['p50']:.4f} ms, {_POINTS} points "
                f"{case['points_ms']['p50']:.4f} ms; on the CPU {case['cpu_points_ms']['p50']:.4f} ms"
            )
    hand_out(record, out)


def _case(device: Device, count: int) -> dict[str, Any]:
    rng, geometry, stream = np.random.default_rng(count), Geometry(WIDTH, HEIGHT), device.stream()
    asked, values = _random_terms(rng, count), rng.normal(0, 1, (COEFFICIENTS, *geometry.grid)).astype(np.float32)
    memory, relevant = Memory(device), Relevance(device, geometry)
    stack = TextureArray(device, "stack", geometry.level(2), LAYERS, 3)
    try:
        coefficients = memory.array("coefficients", values.shape, np.float32, stream)
        coefficients.upload(values, stream)
        found = memory.array("participation", geometry.grid, np.float32, stream)
        points = memory.array("points", (_POINTS, 2), np.float32, stream)
        points.upload(rng.random((_POINTS, 2), np.float32), stream)
        combined = memory.array("combined", (_POINTS,), np.float32, stream)
        each = memory.array("each", (_POINTS, count), np.float32, stream)
        for layer in range(place_of("clip0")[0], LAYERS):
            stack.clear(2, layer)
        relevant.upload(asked, stream)
        relevant.enqueue(coefficients, found, stream)
        _check(found.download(stream), asked, np.concatenate([values, cell_positions(geometry)]))
        delay = memory.array("delay", (_DELAY,), np.uint8, stream)
        few = np.ascontiguousarray(rng.normal(0, 1, (INPUTS, _POINTS)), np.float32)
        return {
            "queries": count,
            "grid_ms": _device_time(
                device, stream, lambda: delay.fill(0, stream), lambda: relevant.enqueue(coefficients, found, stream)
            ),
            "points_ms": _device_time(
                device,
                stream,
                lambda: delay.fill(0, stream),
                lambda: relevant.enqueue_at(stack, points, combined, each, stream),
            ),
            "cpu_points_ms": _host_time(lambda: combined_relevance(asked, relevance(asked, few))),
        }
    finally:
        device.synchronize()
        stack.free()
        relevant.free()
        memory.free()


def _random_terms(rng: np.random.Generator, count: int) -> QueryTerms:
    terms = [
        [(rng.normal(0, 0.4, INPUTS).astype(np.float32), float(rng.normal())) for _ in range(_TERMS)]
        for _ in range(count)
    ]
    return query_terms([Phrase(f"q{i}", negative=i % 5 == 4) for i in range(count)], terms, "sigmoid")


def _check(found: NDArray[np.float32], asked: QueryTerms, inputs: NDArray[np.float32]) -> None:
    wrong = float(np.abs(found - combined_relevance(asked, relevance(asked, inputs))).max())
    if not wrong <= _CLOSE:
        raise RedCheckError(f"participation is off by {wrong:g}")


def _device_time(
    device: Device, stream: Stream, before: Callable[[], None], launch: Callable[[], None]
) -> dict[str, Any]:
    return percentiles(launch_times(device, stream, before, launch, _LAUNCHES)[_LAUNCHES // 10 :], unit="")


def _host_time(call: Callable[[], Any]) -> dict[str, Any]:
    times = []
    for _ in range(_LAUNCHES):
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return percentiles(times[_LAUNCHES // 10 :], unit="")


if __name__ == "__main__":
    run_module(gpu_relevance)
