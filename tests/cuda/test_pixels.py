"""The pixel kernels against the CPU engine, frame by frame, and incremental updates against a rebuild."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.state import GRID_CHANNELS, KEYFRAMES, PixelState
from foveate.pipeline.cpu.pyramid import EDGE_CELL, EDGE_REACH, State, pyramid
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame, Plane
from foveate.pipeline.native.edge_distance import edge_distance
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import ChangeSettings, Settings

pytestmark = pytest.mark.gpu

BT601 = Colour()
Make = Callable[..., Any]
SIZES = [(1, 1), (1, 70), (33, 17), (64, 64), (97, 131), (250, 333), (544, 960)]
CHANNEL_ERROR = 1e-5
"""OpenCV adds the terms of a filter in another order than the kernel does. Worst seen: 2e-6, in edges."""


def noise(rng: np.random.Generator, height: int, width: int) -> Plane:
    """Blocks of different contrast, so that every channel has something to say."""
    coarse = rng.integers(0, 256, (-(-height // 8), -(-width // 8)))
    fine = rng.integers(-20, 20, (height, width))
    return np.clip(coarse.repeat(8, 0).repeat(8, 1)[:height, :width] + fine, 0, 255).astype(np.uint8)


def stir(plane: Plane, rng: np.random.Generator) -> Plane:
    """A copy with a rectangle of new content, and noise that stays below any threshold elsewhere."""
    height, width = plane.shape
    moved = np.clip(plane.astype(np.int16) + rng.integers(-1, 2, plane.shape), 0, 255).astype(np.uint8)
    top, left = rng.integers(0, height), rng.integers(0, width)
    rows, columns = rng.integers(1, height + 1) // 3 + 1, rng.integers(1, width + 1) // 3 + 1
    part = moved[top : top + rows, left : left + columns]
    part[:] = noise(rng, *part.shape)
    return moved


def frames(kind: str, height: int, width: int, count: int, colour: Colour = BT601) -> Iterator[Frame]:
    """A picture that changes in places, stands still for a while, and ends with a cut."""
    rng = np.random.default_rng(height * 1000 + width)
    size = {"420": (-(-height // 2), -(-width // 2)), "444": (height, width)}.get(kind)
    planes = [noise(rng, height, width), *([noise(rng, *size), noise(rng, *size)] if size else [])]
    for index in range(count):
        if index == count - 2:
            planes = [255 - plane // 2 for plane in planes]
        elif index % 4 in (1, 2):
            planes = [stir(plane, rng) for plane in planes]
        chroma = (planes[1], planes[2]) if size else None
        yield Frame(index, index / 25, planes[0], chroma, colour, discontinuity=index == 5)


def by_cpu(sequence: list[Frame], settings: Settings) -> Iterator[State]:
    return pyramid(upload(iter(sequence), settings.change), plan_stream(settings), 3)


def same_change(state: PixelState, expected: State, stream: Stream) -> None:
    frame, update = state.frame.download(stream), expected.update
    assert KEYFRAMES[frame["keyframe"]] == update.keyframe
    assert bool(frame["new_scene"]) == update.new_scene
    assert frame["noise"] == update.noise
    assert frame["changed_count"] == update.changed.sum()
    assert frame["dirty_count"] == update.written.sum()
    assert np.array_equal(state.changed.download(stream), update.changed.astype(np.uint8))
    assert np.array_equal(state.written.download(stream), update.written.astype(np.uint8))
    dirty = state.dirty.download(stream)[: frame["dirty_count"]]
    assert sorted(dirty) == np.flatnonzero(update.written).tolist()


def same_levels(state: PixelState, expected: State, stream: Stream) -> None:
    for plane, cpu in zip(state.planes, expected.levels.planes, strict=True):
        for level in range(plane.base, 5):
            assert np.array_equal(plane.level(level).download(stream), cpu.level(level)), (plane.base, level)


def same_leaf_errors(state: PixelState, expected: State, stream: Stream) -> None:
    assert np.array_equal(state.errors.download(stream), np.stack(expected.errors))


def assert_close(values: NDArray[Any], expected: NDArray[Any], name: str, error: float) -> None:
    worst = float(np.abs(values - expected).max())
    assert worst <= error, f"{name}: {worst} at {np.unravel_index(np.abs(values - expected).argmax(), values.shape)}"


def same_channels(state: PixelState, expected: State, stream: Stream) -> None:
    for name in GRID_CHANNELS:
        if name != "edge_distance":  # a cell close to the limit may count as an edge for one only
            assert_close(state.channel(name).download(stream), expected.grid[name], name, CHANNEL_ERROR)


def same_edge_distance(state: PixelState, expected: State, stream: Stream) -> None:
    """Of the card's own edges."""
    edges, inverted, found = (
        state.channel(name).download(stream) for name in ("edges", "edges_inverted", "edge_distance")
    )
    assert np.array_equal(found, edge_distance(edges, inverted, EDGE_CELL, EDGE_REACH))


OPERATIONS = {
    "change": same_change,
    "levels": same_levels,
    "leaf errors": same_leaf_errors,
    "channels": same_channels,
    "edge distance": same_edge_distance,
}


def noisy() -> Iterator[Frame]:
    """The camera's noise comes, goes and is cut."""
    rng = np.random.default_rng(3)
    still = noise(rng, 200, 330).astype(np.float64)
    for index, spread in enumerate([3, 3, 3, 6, 6, 6, 0, 0, 3, 3]):
        luma = np.clip((255 - still if index == 8 else still) + rng.normal(0, spread, still.shape), 0, 255)
        yield Frame(index, index / 25, luma.astype(np.uint8), None, BT601)


Scene = tuple[Callable[[], Iterator[Frame]], dict[str, Any]]
SCENES: dict[str, Scene] = {
    **{
        f"{height}x{width}, {kind}": (partial(frames, kind, height, width, 12), {"change": {"keyframe_interval": 4}})
        for height, width in SIZES
        for kind in ("420", "444", "grey")
    },
    **{
        f"analysis level {level}, {colour}": (partial(frames, "420", 123, 201, 8, colour), {"analysis_level": level})
        for level in (0, 1)
        for colour in (Colour("bt709"), Colour("bt601", True))
    },
    "noise": (noisy, {}),
}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_equals_the_cpu_engines(operation: str, scene: str, feeder: Make, stream: Stream) -> None:
    make, changes = SCENES[scene]
    sequence, settings = list(make()), Settings.model_validate(changes)
    rig = feeder(sequence[0], settings)
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        OPERATIONS[operation](rig.pixels.state, expected, stream)


def test_the_threshold_follows_the_noise_a_frame_later(feeder: Make, stream: Stream) -> None:
    sequence = list(noisy())
    rig, shares = feeder(sequence[0]), []
    for frame in sequence[:3]:
        rig.feed(frame)
        shares.append(rig.pixels.state.changed.download(stream).mean())
    assert shares[1] > 0.9 > 0.3 > shares[2]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_incremental_equals_rebuild(level: int, feeder: Make, stream: Stream) -> None:
    sequence = list(frames("420", 300, 420, 30))[:-2]
    settings = Settings(analysis_level=level, change=ChangeSettings(keyframe_interval=1000))
    rig = feeder(sequence[0], settings)
    for frame in sequence:
        rig.feed(frame)
    luma, cb, cr = (plane.levels[0].download(stream) for plane in rig.pixels.state.planes)
    held = Frame(0, 0.0, luma[:300, :420], (cb[:150, :210], cr[:150, :210]), sequence[0].colour)
    anew = feeder(held, settings)
    anew.feed(held)
    still = [name != "motion" for name in GRID_CHANNELS]
    for one, other in ((rig.pixels.state, anew.pixels.state),):
        assert np.array_equal(one.channels.download(stream)[still], other.channels.download(stream)[still])
        assert np.array_equal(one.errors.download(stream), other.errors.download(stream))
        for mine, theirs in zip(one.planes, other.planes, strict=True):
            for a, b in zip(mine.levels, theirs.levels, strict=True):
                assert np.array_equal(a.download(stream), b.download(stream))


def test_edge_distance_at_every_distance(feeder: Make, stream: Stream) -> None:
    """A single bright cell on grey: distances are known without any code."""
    luma = np.full((32 * 20, 32 * 24), 128, np.uint8)
    luma[16 * 19 + 4 : 16 * 19 + 12, 16 * 23 + 4 : 16 * 23 + 12] = 255
    frame = Frame(0, 0.0, luma, None)
    rig = feeder(frame)
    rig.feed(frame)
    rows, columns = np.indices((40, 48))
    expected = np.minimum(np.hypot(rows - 19, columns - 23) / 8, 1).astype(np.float32)
    assert_close(rig.pixels.state.channel("edge_distance").download(stream), expected, "edge_distance", 1e-6)


def test_a_frame_rests_only_where_the_cascade_says_so(feeder: Make, stream: Stream) -> None:
    first = next(frames("420", 70, 70, 3))
    rig = feeder(first)
    rig.feed(first)
    rig.feed(first)
    assert rig.pixels.state.frame.download(stream)["unchanged"] == 0
    state = rig.pixels.state.frame.download(stream)
    state["settled"] = 1
    rig.pixels.state.frame.upload(state, stream)
    rig.feed(first)
    assert rig.pixels.state.frame.download(stream)["unchanged"] == 1
    rig.feed(first, feedback=True)
    assert rig.pixels.state.frame.download(stream)["unchanged"] == 0
