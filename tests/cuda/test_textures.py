"""What the textures hold: the RGB pyramid against the planes, the channel stack against the Grid and itself."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.pixels.grid_layers import GridLayers
from foveate.cuda.pixels.layout import GRIDDED, LAYERS, ORDER, SAMPLED, place_of
from foveate.cuda.pixels.pixels import Pixels, pixel_bytes
from foveate.cuda.textures.sample import Sampler
from foveate.cuda.textures.sample_reference import bilinear, trilinear
from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.colour import matrix_of
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.settings import ChangeSettings, Settings

Make = Callable[..., Any]
HALF = 2**-11
"""Half floats in [0.5, 1] lie 2**-11 apart; a value that is rounded twice is off by one of them. Worst seen: 4.9e-4."""
FILTER = 8e-3
"""The hardware's weights have 8 bits in each of three directions: 3/512 of the range, and a half float's rounding."""
REDUCE = {
    "mean": lambda blocks: blocks.mean(axis=(1, 3)),
    "max": lambda blocks: blocks.max(axis=(1, 3)),
}


def pictures(height: int, width: int, count: int, colour: Colour, halved: bool) -> list[Frame]:
    """A disc that moves over a gradient, in colour."""
    rows, columns = np.indices((height, width))
    step = 2 if halved else 1
    made = []
    for index in range(count):
        disc = (rows - height / 2) ** 2 + (columns - 20 - 9 * index) ** 2 < 200
        luma = np.where(disc, 230, 40 + rows % 64 + columns // 8 % 32).astype(np.uint8)
        cb = np.where(disc, 60, 120 + columns // 4 % 20).astype(np.uint8)[::step, ::step]
        cr = np.where(disc, 200, 110 + rows // 4 % 30).astype(np.uint8)[::step, ::step]
        made.append(Frame(index, index / 25, luma, (np.ascontiguousarray(cb), np.ascontiguousarray(cr)), colour))
    return made


def component(texture: TextureArray, name: str, level: int, stream: Stream) -> NDArray[np.float32]:
    layer, part = place_of(name)
    return texture.download(level, layer, stream)[..., part].astype(np.float32)


def test_the_layout_holds_every_channel_once() -> None:
    assert sorted(ORDER) == sorted(channel.name for channel in CHANNELS)
    assert LAYERS == 10
    assert len(SAMPLED) % 4 == len(GRIDDED) % 4 == 0
    assert len({place_of(name) for name in ORDER}) == 40


@pytest.mark.gpu
@pytest.mark.parametrize("colour", [Colour("bt709"), Colour("bt601", True)])
@pytest.mark.parametrize("halved", [True, False])
def test_the_rgb_pyramid_is_the_planes_converted(colour: Colour, halved: bool, feeder: Make, stream: Stream) -> None:
    frames = pictures(70, 101, 4, colour, halved)
    rig = feeder(frames[0], Settings())
    for frame in frames:
        rig.feed(frame)
    matrix, offsets = matrix_of(colour)
    for level in range(5):
        planes = [plane.level(level).download(stream).astype(np.float64) for plane in rig.pixels.state.planes]
        rows, columns = planes[0].shape
        planes[1:] = [
            plane if plane.shape == (rows, columns) else cv2.resize(plane, (columns, rows)) for plane in planes[1:]
        ]
        expected = np.clip((np.stack(planes, -1) - offsets) @ matrix.T / 255, 0, 1)
        found = rig.pixels.rgb.download(level, 0, stream).astype(np.float64)
        assert np.abs(found[..., :3] - expected).max() <= HALF, level
        assert (found[..., 3] == 1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_stacks_last_level_is_the_grid(level: int, feeder: Make, stream: Stream) -> None:
    frames = pictures(130, 190, 6, Colour("bt709"), True)
    rig = feeder(frames[0], Settings(analysis_level=level))
    for frame in frames:
        rig.feed(frame)
        for name in ("edges", "edges_inverted", "highpass", "lowpass", "saliency", "motion"):
            found = component(rig.pixels.stack, name, 4 - level, stream)
            expected = rig.pixels.state.channel(name).download(stream)
            assert np.abs(found - expected).max() <= HALF, (name, frame.index)
    assert rig.pixels.state.channel("motion").download(stream).max() > 0.1


@pytest.mark.gpu
def test_every_level_is_the_reduction_of_the_one_before(feeder: Make, stream: Stream) -> None:
    frames = pictures(100, 160, 3, Colour("bt709"), True)
    rig = feeder(frames[0], Settings(analysis_level=0))
    for frame in frames:
        rig.feed(frame)
    reduce_of = {channel.name: channel.reduce for channel in CHANNELS}
    for name in SAMPLED:
        for level in range(1, 5):
            fine = component(rig.pixels.stack, name, level - 1, stream)
            blocks = fine.reshape(fine.shape[0] // 2, 2, fine.shape[1] // 2, 2)
            found = component(rig.pixels.stack, name, level, stream)
            assert np.abs(found - REDUCE[reduce_of[name]](blocks)).max() <= HALF, (name, level)


@pytest.mark.gpu
@pytest.mark.parametrize("level", [0, 2])
def test_incremental_textures_equal_rebuilt_ones(level: int, feeder: Make, stream: Stream) -> None:
    frames = pictures(200, 260, 9, Colour("bt709"), True)
    settings = Settings(analysis_level=level, change=ChangeSettings(threshold=0, keyframe_interval=1000))
    rig, anew = feeder(frames[0], settings), feeder(frames[-1], settings)
    for frame in [*frames, frames[-1]]:  # the last one stands still, so that motion is gone
        rig.feed(frame)
    anew.feed(frames[-1])
    for one, other, layers in ((rig.pixels.rgb, anew.pixels.rgb, 1), (rig.pixels.stack, anew.pixels.stack, 3)):
        for depth in range(one.levels):
            for layer in range(layers):
                mine, theirs = one.download(depth, layer, stream), other.download(depth, layer, stream)
                assert np.array_equal(mine, theirs), (one.name, depth, layer)


@pytest.mark.gpu
def test_the_grids_own_channels(device: Device, feeder: Make, memory: Memory, stream: Stream) -> None:
    frame = pictures(130, 190, 1, Colour(), True)[0]
    rig = feeder(frame, Settings())
    rig.feed(frame)
    pixels: Pixels = rig.pixels
    grid = pixels.state.geometry.grid
    rng = np.random.default_rng(2)
    values = {"fixation": rng.random((2, *grid), np.float32), "gaze": rng.random(grid, np.float32)}
    values["text"] = rng.random(grid, np.float32)
    values["cluster_id"] = rng.integers(0, 3, (2, *grid)).astype(np.float32)
    arrays = {name: memory.array(name, value.shape, np.float32, stream) for name, value in values.items()}
    for name, value in values.items():
        arrays[name].upload(value, stream)
    turn = memory.array("turn", (1,), np.int32, stream)
    turn.upload(np.ones(1, np.int32), stream)
    beside = component(pixels.stack, "saliency", pixels.stack.levels - 1, stream)
    GridLayers(device, pixels.state, pixels.stack, arrays, turn.pointer).enqueue(stream)

    def found(name: str) -> NDArray[np.float32]:
        return component(pixels.stack, name, pixels.stack.levels - 1, stream)

    assert np.abs(found("fixation") - values["fixation"][1]).max() <= HALF
    assert np.abs(found("gaze") - values["gaze"]).max() <= HALF
    assert np.abs(found("text") - values["text"]).max() <= HALF
    assert np.array_equal(found("saliency"), beside)  # in the same layer
    assert np.array_equal(found("cluster_id"), values["cluster_id"][1])
    assert np.abs(found("edge_distance") - pixels.state.channel("edge_distance").download(stream)).max() <= HALF
    assert (found("clip3") == 0).all()
    padded = np.pad(values["cluster_id"][1], 1, mode="edge")
    own = padded[1:-1, 1:-1]
    differs = [padded[:-2, 1:-1] != own, padded[2:, 1:-1] != own, padded[1:-1, :-2] != own, padded[1:-1, 2:] != own]
    assert np.array_equal(found("boundary") == 1, np.any(differs, axis=0))


@pytest.mark.gpu
def test_a_picture_too_large_for_the_card_is_one_line(device: Device, stream: Stream) -> None:
    geometry = Geometry(400_000, 400_000)
    assert pixel_bytes(geometry, 0) > device.memory()[1]
    with pytest.raises(EngineError, match=r"no room for a picture of 400000x400000 .* MiB wanted"):
        Pixels(device, geometry, Colour(), True, Settings(analysis_level=0), stream)


@pytest.mark.gpu
@pytest.mark.parametrize("level", [0, 2])
def test_trilinear_samples(level: int, device: Device, feeder: Make, memory: Memory, stream: Stream) -> None:
    frame = pictures(150, 210, 1, Colour("bt709"), True)[0]
    rig = feeder(frame, Settings(analysis_level=level))
    rig.feed(frame)
    stack: TextureArray = rig.pixels.stack
    GridLayers(device, rig.pixels.state, stack, {}, rig.pixels.state.frame.pointer).enqueue(stream)
    rng = np.random.default_rng(4)
    points = rng.random((273, 3), np.float32) * np.float32([1, 1, stack.levels - 1])
    given, found = (
        memory.array("points", (273, 3), np.float32, stream),
        memory.array("v", (273, 40), np.float32, stream),
    )
    given.upload(points, stream)
    Sampler(device, stack, len(SAMPLED) // 4).enqueue(given, found, stream)
    values = found.download(stream)
    for layer in range(3):
        levels = [stack.download(depth, layer, stream) for depth in range(stack.levels)]
        expected = np.stack([trilinear(levels, *point) for point in points.tolist()])
        wrong = np.abs(values[:, 4 * layer : 4 * layer + 4] - expected)
        at, part = np.unravel_index(wrong.argmax(), wrong.shape)
        assert wrong.max() <= FILTER, (layer, part, points[at], values[at, 4 * layer + part], expected[at, part])
    grid = rig.pixels.state.channel("edge_distance").download(stream).astype(np.float16)[..., None].repeat(4, -1)
    expected = np.stack([bilinear(grid, x, y) for x, y, _ in points.tolist()])[:, 0]
    assert np.abs(values[:, ORDER.index("edge_distance")] - expected).max() <= FILTER
    with pytest.raises(ValueError, match="points must be"):
        Sampler(device, stack, len(SAMPLED) // 4).enqueue(found, found, stream)
