"""Scene cuts: found where the structure of the picture changes, whatever the light does."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foveate.pipeline.cpu.upload import Uploader
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.native.cuts import cell_sums, displaced, in_place
from foveate.pipeline.settings import ChangeSettings

HEIGHT, WIDTH = 200, 268  # the last tiles are cut by the edge
BLACK, WHITE = (np.full((HEIGHT, WIDTH), grey, np.uint8) for grey in (16, 235))

Picture = NDArray[np.uint8]


def picture(seed: int) -> Picture:
    """Cells of 16x16 pixels, each with a grey of its own from 40 to 120; and a little noise."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(40, 121, (-(-HEIGHT // 16), -(-WIDTH // 16))).repeat(16, 0).repeat(16, 1)
    return np.asarray(cells[:HEIGHT, :WIDTH] + rng.integers(-1, 2, (HEIGHT, WIDTH)), np.uint8)


ONE, OTHER = picture(1), picture(2)


def lit(luma: Picture, gain: float) -> Picture:
    """The picture with its light above black times ``gain``."""
    return np.clip(np.rint(16 + gain * (luma.astype(float) - 16)), 0, 255).astype(np.uint8)


def faded(luma: Picture, frames: int) -> list[Picture]:
    """The picture, fading out; black is not among its frames."""
    return [lit(luma, 1 - index / frames) for index in range(frames)]


def cuts(pictures: Sequence[Picture], **settings: float) -> list[int]:
    """The frames that the engine takes for cuts."""
    change = ChangeSettings.model_validate({"keyframe_interval": 1000, **settings})
    uploader = Uploader(change)
    updates = [uploader.update(Frame(index, index / 25, luma, None, Colour())) for index, luma in enumerate(pictures)]
    assert [update.keyframe for update in updates if update.keyframe not in (None, "cut")] == ["first"]
    return [index for index, update in enumerate(updates) if update.keyframe == "cut"]


def panned(down: int, right: int, frames: int, seed: int = 7) -> list[Picture]:
    """Frames uint8[384, 640] of a camera that moves so many pixels a frame along a wall of stones, 40x40 pixels."""
    rng = np.random.default_rng(seed)
    stones = rng.integers(40, 121, (80, 80)).repeat(40, 0).repeat(40, 1).astype(np.uint8)
    places = [(1500 + down * index, 1500 + right * index) for index in range(frames)]
    return [np.ascontiguousarray(stones[y : y + 384, x : x + 640]) for y, x in places]


WALL = panned(0, 47, 4, seed=8)
SCENES: dict[str, tuple[list[Picture], list[int]]] = {
    "still": ([ONE] * 6, []),
    "cut": ([ONE] * 4 + [OTHER] * 4, [4]),
    "cut on the second frame": ([ONE] + [OTHER] * 4, [1]),
    "cut there and back": ([ONE] * 4 + [OTHER] * 3 + [ONE] * 3, [4, 7]),
    "cut to the mirror image": ([ONE] * 4 + [np.ascontiguousarray(ONE[:, ::-1])] * 4, [4]),
    "cut in the dark": ([lit(ONE, 0.15)] * 4 + [lit(OTHER, 0.15)] * 4, [4]),
    "fade out and in": ([*faded(ONE, 6), BLACK, BLACK, *faded(ONE, 6)[::-1]], []),
    "fade to white and back": ([255 - each for each in (*faded(ONE, 6), BLACK, *faded(ONE, 6)[::-1])], []),
    "black frames in between": ([ONE] * 4 + [BLACK] * 2 + [ONE] * 4, []),
    "black, then another scene": ([ONE] * 4 + [BLACK] * 2 + [OTHER] * 4, [6]),
    "black at the beginning": ([BLACK] * 3 + [ONE] * 4, []),
    "a white frame": ([ONE] * 4 + [WHITE] + [ONE] * 4, []),
    "two frames of twice the light": ([ONE] * 4 + [lit(ONE, 2)] * 2 + [ONE] * 4, []),
    "flicker": ([lit(ONE, 1 + 0.3 * (-1) ** index) for index in range(10)], []),
    "the exposure jumps": ([ONE] * 4 + [lit(ONE, 0.4)] * 4 + [lit(ONE, 1.8)] * 4, []),
    "a contrast that is turned over": ([ONE] * 4 + [255 - ONE] * 4, [4]),
    "eight other pictures in a row": ([ONE] * 4 + [picture(seed) for seed in range(3, 11)] + [ONE] * 3, [4]),
    "a fast pan": (panned(0, 47, 8), []),
    "a fast pan back": (panned(0, -59, 8), []),
    "a fast pan downwards": (panned(43, 0, 8), []),
    "a fast pan along a diagonal": (panned(35, -50, 8), []),
    "a fast pan in changing light": ([lit(luma, 1 - index / 10) for index, luma in enumerate(panned(0, 47, 8))], []),
    "a fast pan between two cuts": ([*panned(0, 0, 3), WALL[0], *WALL, WALL[-1], *panned(0, 0, 2, seed=9)], [3, 9]),
    "a camera turned to another place": (panned(0, 400, 2), [1]),
    "and a cut once they end": ([ONE] * 2 + [picture(3), picture(4), picture(4), OTHER, OTHER], [2, 5]),
}


@pytest.mark.parametrize("name", SCENES)
def test_cuts_are_found_at_their_frame_and_light_is_none(name: str) -> None:
    pictures, expected = SCENES[name]
    assert cuts(pictures) == expected


def test_a_fade_through_black_to_another_scene_is_one_cut_where_that_appears() -> None:
    found = cuts([*faded(ONE, 6), BLACK, BLACK, *faded(OTHER, 6)[::-1]])
    assert len(found) == 1
    assert 8 <= found[0] <= 10


def test_a_dissolve_is_no_cut() -> None:
    shares = np.linspace(0, 1, 13)
    assert cuts([np.asarray(ONE * (1 - share) + OTHER * share, np.uint8) for share in shares]) == []


@pytest.mark.parametrize(("share", "expected"), [(0.9, []), (0.6, [1])])
def test_a_cut_changes_most_of_the_picture(share: float, expected: list[int]) -> None:
    """Eight of nine columns of tiles, of which the last is narrow."""
    part = ONE.copy()
    part[:, : 32 * 8] = OTHER[:, : 32 * 8]
    assert cuts([ONE, part], cut_share=share) == expected


def test_the_limit_is_a_setting() -> None:
    pictures = [ONE, ONE, 255 - ONE]
    assert cuts(pictures, cut_structure=0.99) == [2]
    assert cuts(pictures, cut_structure=1) == []


def test_what_was_before_a_break_does_not_count() -> None:
    """In the times of the frames, or in their size."""
    uploader = Uploader(ChangeSettings(keyframe_interval=1000))
    pictures = [(ONE, False), (BLACK, False), (BLACK, True), (OTHER, False), (OTHER[:, :256], False)]
    updates = [
        uploader.update(Frame(index, float(index), luma, None, Colour(), broken))
        for index, (luma, broken) in enumerate(pictures)
    ]
    assert [update.keyframe for update in updates] == ["first", None, "discontinuity", None, "size"]


def test_pictures_smaller_than_a_tile_have_no_cuts() -> None:
    assert cuts([ONE[:31, :300], OTHER[:31, :300]]) == []


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 2**32 - 1))
def test_sums_are_over_the_cells_of_whole_tiles(height: int, width: int, seed: int) -> None:
    wide = np.random.default_rng(seed).integers(0, 256, (height, width + 9), dtype=np.uint8)
    luma = wide[:, 5 : 5 + width]  # rows that do not lie side by side
    tops, lefts = range(0, height // 32 * 32, 16), range(0, width // 32 * 32, 16)
    expected = [[int(luma[top : top + 16, left : left + 16].sum()) for left in lefts] for top in tops]
    assert cell_sums(luma).tolist() == expected


def haar(sums: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[rows - 1, columns - 1, 3]: the details of all 2x2 cells."""
    a, b, c, d = sums[:-1, :-1], sums[:-1, 1:], sums[1:, :-1], sums[1:, 1:]
    return np.stack([a - b + c - d, a + b - c - d, a - b - c + d], axis=2)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(-4, 4), st.integers(-4, 4), st.integers(0, 2**32 - 1))
def test_products_are_those_of_the_details_of_two_by_two_cells(
    rows: int, columns: int, down: int, right: int, seed: int
) -> None:
    one, other = np.random.default_rng(seed).integers(0, 65281, (2, 2 * rows, 2 * columns), dtype=np.uint16)
    first, second = haar(one.astype(np.int64)), haar(other.astype(np.int64))
    tiles = first[::2, ::2], second[::2, ::2]
    assert in_place(one, other) == tuple((x * y).sum() for x, y in (tiles[:1] * 2, tiles[1:] * 2, tiles))
    places = list(np.ndindex(first.shape[:2]))
    pairs = [(first[y, x], second[y - down, x - right]) for y, x in places if (y - down, x - right) in places]
    expected = [sum(int((pair[i] * pair[j]).sum()) for pair in pairs) for i, j in ((0, 0), (1, 1), (0, 1))]
    assert list(displaced(one, other, down, right)) == expected


def test_pictures_of_two_sizes_have_no_products() -> None:
    with pytest.raises(ValueError, match="contiguous uint16"):
        in_place(np.zeros((2, 2), np.uint16), np.zeros((4, 2), np.uint16))
