"""The pixel kernels against the CPU engine, frame by frame, and incremental updates against a rebuild."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.pixels.pixels import Pixels
from foveate.cuda.state import GRID_CHANNELS, KEYFRAMES
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


def assert_same_pixels(pixels: Pixels, expected: State, stream: Stream) -> None:
    state = pixels.state
    assert np.array_equal(state.changed.download(stream), expected.update.changed.astype(np.uint8))
    assert np.array_equal(state.written.download(stream), expected.update.written.astype(np.uint8))
    for plane, cpu in zip(state.planes, expected.levels.planes, strict=True):
        for level in range(plane.base, 5):
            assert np.array_equal(plane.level(level).download(stream), cpu.level(level)), (plane.base, level)


def assert_same_decisions(pixels: Pixels, expected: State, stream: Stream) -> None:
    state, update = pixels.state.frame.download(stream), expected.update
    assert KEYFRAMES[state["keyframe"]] == update.keyframe
    assert bool(state["new_scene"]) == update.new_scene
    assert state["changed_count"] == update.changed.sum()
    assert state["dirty_count"] == update.written.sum()
    dirty = pixels.state.dirty.download(stream)[: state["dirty_count"]]
    assert sorted(dirty) == np.flatnonzero(update.written).tolist()


def assert_close(values: NDArray[Any], expected: NDArray[Any], name: str, error: float) -> None:
    worst = float(np.abs(values - expected).max())
    assert worst <= error, f"{name}: {worst} at {np.unravel_index(np.abs(values - expected).argmax(), values.shape)}"


def assert_same_maps(pixels: Pixels, expected: State, stream: Stream) -> None:
    channels = dict(zip(GRID_CHANNELS, pixels.state.channels.download(stream), strict=True))
    for name, values in channels.items():
        if name != "edge_distance":  # a cell close to the limit may count as an edge for one only
            assert_close(values, expected.grid[name], name, CHANNEL_ERROR)
    distance = edge_distance(channels["edges"], channels["edges_inverted"], EDGE_CELL, EDGE_REACH)
    assert np.array_equal(channels["edge_distance"], distance)
    assert np.array_equal(pixels.state.errors.download(stream), np.stack(expected.errors))


@pytest.mark.parametrize("kind", ["420", "444", "grey"])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_every_frame_equals_the_cpu_engines(height: int, width: int, kind: str, feeder: Make, stream: Stream) -> None:
    sequence = list(frames(kind, height, width, 12))
    settings = Settings(change=ChangeSettings(keyframe_interval=4))
    rig = feeder(sequence[0], settings)
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        assert_same_decisions(rig.pixels, expected, stream)
        assert_same_pixels(rig.pixels, expected, stream)
        assert_same_maps(rig.pixels, expected, stream)


def test_periodic_keyframes_can_come_earlier_as_on_the_cpu(feeder: Make, stream: Stream) -> None:
    sequence = list(frames("420", 64, 96, 12))
    settings = Settings(change=ChangeSettings(keyframe_interval=4, keyframe_offset=6))
    rig = feeder(sequence[0], settings)
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        assert_same_decisions(rig.pixels, expected, stream)


@pytest.mark.parametrize("offset", [0, 3])
def test_periodic_keyframes_go_by_number_as_on_the_cpu(offset: int, feeder: Make, stream: Stream) -> None:
    """Past a cut, a jump in time, and a cut on the frame of a periodic one."""
    dark, bright = (noise(np.random.default_rng(low), 64, 96) // 4 + low for low in (20, 180))
    shown = [dark] * 6 + [bright] * 2 + [dark] * 6
    sequence = [
        Frame(index, index / 25, luma.astype(np.uint8), None, BT601, discontinuity=index == 11)
        for index, luma in enumerate(shown)
    ]
    settings = Settings(change=ChangeSettings(keyframe_interval=4, keyframe_offset=offset))
    rig = feeder(sequence[0], settings)
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        assert_same_decisions(rig.pixels, expected, stream)


def test_noise_raises_the_threshold_as_on_the_cpu(feeder: Make, stream: Stream) -> None:
    """The camera's noise comes, goes and is cut: its level, which tiles changed and their pixels are the CPU's."""
    rng = np.random.default_rng(3)
    still = noise(rng, 200, 330).astype(np.float64)
    sequence = []
    for index, spread in enumerate([3, 3, 3, 6, 6, 6, 0, 0, 3, 3]):
        luma = np.clip((255 - still if index == 8 else still) + rng.normal(0, spread, still.shape), 0, 255)
        sequence.append(Frame(index, index / 25, luma.astype(np.uint8), None, BT601))
    settings = Settings()
    rig = feeder(sequence[0], settings)
    shares = []
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        assert_same_decisions(rig.pixels, expected, stream)
        assert_same_pixels(rig.pixels, expected, stream)
        assert rig.pixels.state.frame.download(stream)["noise"] == expected.update.noise
        shares.append(expected.update.changed.mean())
    assert shares[1] > 0.9 > 0.3 > shares[2]  # the threshold follows a frame later


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("colour", [Colour("bt709"), Colour("bt601", True)])
def test_finer_channels_and_full_range(level: int, colour: Colour, feeder: Make, stream: Stream) -> None:
    sequence = list(frames("420", 123, 201, 8, colour))
    settings = Settings(analysis_level=level)
    rig = feeder(sequence[0], settings)
    for frame, expected in zip(sequence, by_cpu(sequence, settings), strict=True):
        rig.feed(frame)
        assert_same_pixels(rig.pixels, expected, stream)
        assert_same_maps(rig.pixels, expected, stream)


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
