"""Scene cuts on the card: those of the CPU engine, after any sequence of pictures, light and black frames."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from foveate.cuda.driver.device import Stream
from foveate.cuda.state import KEYFRAMES
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame, Plane
from foveate.pipeline.native.cuts import cell_sums
from foveate.pipeline.settings import ChangeSettings, Settings

pytestmark = pytest.mark.gpu

Make = Callable[..., Any]
SIZES = [(31, 300), (33, 64), (97, 131), (200, 268), (1080, 1920)]
EVENTS = ("still", "cut", "light", "black", "white", "part", "mirror", "faint", "pan")


def picture(rng: np.random.Generator, height: int, width: int) -> Plane:
    """Cells of 16x16 pixels, each with a grey of its own, and noise."""
    cells = rng.integers(20, 130, (-(-height // 16), -(-width // 16))).repeat(16, 0).repeat(16, 1)
    return np.asarray(cells[:height, :width] + rng.integers(-2, 3, (height, width)), np.uint8)


def after(luma: Plane, scene: Plane, event: str, rng: np.random.Generator) -> Plane:
    """The frame that follows ``luma``; ``scene`` is the picture that the light falls on."""
    if event == "still":
        return luma
    if event in ("black", "white"):
        return np.full_like(luma, 16 if event == "black" else 235)
    if event == "light":
        return np.clip(scene * rng.uniform(0.3, 2), 0, 255).astype(np.uint8)
    if event == "pan":  # some farther than is looked for
        most = luma.shape[0] // 3, luma.shape[1] // 3
        return np.roll(luma, [int(rng.integers(-by, by + 1)) * int(rng.integers(0, 2)) for by in most], (0, 1))
    if event == "faint":
        return np.asarray(16 + scene // 40, np.uint8)
    if event == "part":
        moved = scene.copy()
        moved[:, : luma.shape[1] * 2 // 3] = picture(rng, *luma.shape)[:, : luma.shape[1] * 2 // 3]
        return moved
    return scene


def events(height: int, width: int, seed: int) -> Iterator[Frame]:
    """Forty frames."""
    rng = np.random.default_rng(seed)
    luma = scene = picture(rng, height, width)
    for index in range(40):
        event = str(rng.choice(EVENTS)) if index else "still"
        if event == "cut":
            scene = picture(rng, height, width)
        elif event == "mirror":
            scene = np.ascontiguousarray(scene[:, ::-1])
        luma = after(luma, scene, event, rng)
        yield Frame(index, index / 25, luma, None, Colour(), discontinuity=index == 25)


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_keyframes_equal_the_cpu_engines(size: tuple[int, int], seed: int, feeder: Make, stream: Stream) -> None:
    sequence, settings = list(events(*size, seed)), Settings(change=ChangeSettings(noise=0, keyframe_interval=1000))
    rig = feeder(sequence[0], settings)
    expected = [update.keyframe for update in upload(iter(sequence), settings.change)]
    found = []
    for frame in sequence:
        rig.feed(frame)
        found.append(KEYFRAMES[rig.pixels.state.frame.download(stream)["keyframe"]])
    assert found == expected
    assert ("cut" in expected) == (size[0] >= 32)


def test_a_known_cut_a_flash_and_black_frames(feeder: Make, stream: Stream) -> None:
    one, other = (picture(np.random.default_rng(seed), 200, 268) for seed in (1, 2))
    black, white = (np.full_like(one, grey) for grey in (16, 235))
    pictures = [one, one, white, one, other, other, black, black, other, black, one, one]
    sequence = [Frame(index, index / 25, luma, None, Colour()) for index, luma in enumerate(pictures)]
    rig, cuts = feeder(sequence[0]), []
    for frame in sequence:
        rig.feed(frame)
        if KEYFRAMES[rig.pixels.state.frame.download(stream)["keyframe"]] == "cut":
            cuts.append(frame.index)
    assert cuts == [4, 10]


@pytest.mark.parametrize("step", [(0, 47), (0, -59), (43, 0), (35, -50)], ids=str)
def test_a_fast_pan_is_no_cut_and_a_turn_to_another_place_is(
    step: tuple[int, int], feeder: Make, stream: Stream
) -> None:
    stones = np.random.default_rng(7).integers(40, 121, (80, 80)).repeat(40, 0).repeat(40, 1).astype(np.uint8)
    places = [(1500 + step[0] * index, 1500 + step[1] * index) for index in (0, 0, 1, 2, 3, 3, 3, 20, 20)]
    rig, cuts = feeder(Frame(0, 0.0, stones[:384, :640], None, Colour())), []
    for index, (y, x) in enumerate(places):
        luma = np.ascontiguousarray(stones[y : y + 384, x : x + 640])
        rig.feed(Frame(index, index / 25, luma, None, Colour()))
        if KEYFRAMES[rig.pixels.state.frame.download(stream)["keyframe"]] == "cut":
            cuts.append(index)
    assert cuts == [7]


@pytest.mark.parametrize("size", [(97, 131), (200, 268)], ids=str)
def test_cells_are_the_sums_of_the_frame_and_of_what_is_held(
    size: tuple[int, int], feeder: Make, stream: Stream
) -> None:
    one, other = (picture(np.random.default_rng(seed), *size) for seed in (3, 4))
    rig = feeder(Frame(0, 0.0, one, None, Colour()))
    for index, luma in enumerate((one, other)):
        rig.feed(Frame(index, index / 25, luma, None, Colour()))
    rows, columns = size[0] // 32, size[1] // 32
    cells = rig.pixels.cuts.cells.download(stream)
    assert not cells[rows:].any()
    assert not cells[:, columns:].any()
    words = cells[:rows, :columns].reshape(rows, columns, 2, 2).swapaxes(1, 2).reshape(2 * rows, 2 * columns)
    assert np.array_equal(words & 0xFFFF, cell_sums(other))
    assert np.array_equal(words >> 16, cell_sums(one))
