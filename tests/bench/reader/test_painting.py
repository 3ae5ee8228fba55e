"""The reader's picture and the texture, painted without the pipeline's code."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.reader.painting import NOT_SHOWN, ReaderPicture, decibels, level_enlarged, lods_of, mean_square
from foveate.bench.reader.texture import Texture, block_means
from foveate.pipeline.selection import Selection
from foveate.pipeline.stream import open_stream

Make = Callable[..., Footage]


def selection(width: int, height: int, tokens: list[tuple[int, int, int]]) -> Selection:
    """Of tokens (x, y, lod)."""
    x, y, lod = (np.array(column, np.int32) for column in zip(*tokens, strict=True))
    nothing: Any = np.zeros(len(x), np.float32)
    return Selection(
        0, 0.0, width, height, None, 0.0, 0.0, x, y, lod.astype(np.uint8), *[nothing] * 3, None, *[nothing] * 2
    )


def test_lods_of_tokens_that_reach_over_the_edge() -> None:
    tokens = [(32, 32, 2), (72, 8, 0), (80, 48, 1)]
    expected = [[2, 2, 2, 2, 0], [2, 2, 2, 2, -1], [2, 2, 2, 2, 1]]
    assert lods_of(selection(80, 48, tokens)).tolist() == expected


def test_a_level_is_box_means_enlarged_bilinearly() -> None:
    plane = np.zeros((32, 32), np.uint8)
    plane[:, 16:] = 160
    # Level 4 has the samples 0 and 160 in each row, at columns 7.5 and 23.5; between them a ramp of 10 a pixel.
    ramp = np.clip((np.arange(32) - 7.5) * 10, 0, 160)
    np.testing.assert_array_equal(level_enlarged(plane, 4), np.tile(np.rint(ramp), (32, 1)))


def test_a_level_of_a_picture_of_odd_size_repeats_the_edge() -> None:
    plane = np.full((33, 7), 10, np.uint8)
    plane[32] = 90
    large = level_enlarged(plane, 1)
    assert large.shape == plane.shape
    # Rows 32 and 33 make one sample of 90; row 32 lies a quarter of the way back to the sample before it.
    assert large[32].tolist() == [70] * 7


def test_newest_tokens_stay_and_the_rest_is_grey(footage_of_cells: Make) -> None:
    first, second = footage_of_cells([[10, 20, 30]], [[40, 50, 60]]).pictures
    reader = ReaderPicture([plane.shape for plane in first.planes])
    reader.paint(first.planes, np.array([[0, 0, NOT_SHOWN]], np.int8))
    reader.paint(second.planes, np.array([[NOT_SHOWN, 0, NOT_SHOWN]], np.int8))
    assert reader.planes[0][0, ::16].tolist() == [10, 50, 128]


def test_chroma_of_half_size_is_whole_at_lod_1() -> None:
    luma, chroma = np.arange(32 * 32).reshape(32, 32) % 251, np.arange(16 * 16).reshape(16, 16) % 241
    planes = [plane.astype(np.uint8) for plane in (luma, chroma, chroma)]
    reader = ReaderPicture([plane.shape for plane in planes])
    reader.paint(planes, np.ones((2, 2), np.int8))
    np.testing.assert_array_equal(reader.planes[1], planes[1])
    assert (reader.planes[0] != planes[0]).any()


def test_decibels() -> None:
    assert decibels(255.0**2) == 0
    assert decibels(1.0) == pytest.approx(48.13, abs=0.01)
    assert decibels(0.0) == 60
    assert mean_square(np.array([[1, 2]], np.uint8), np.array([[4, 2]], np.uint8)) == 4.5


def test_block_means_repeat_the_edge() -> None:
    assert block_means(np.array([[2, 4, 7]], np.int16), 2).tolist() == [[3.0, 7.0]]


def test_a_tile_is_written_where_one_block_differs_by_more_than_the_threshold(footage_of: Make) -> None:
    before = np.full((64, 64), 100, np.uint8)
    after = before.copy()
    after[0:8, 0:8] = 103  # not more than 3
    after[40:48, 8:16] = 104
    after[63, 63] = 255  # one pixel of 64: 155 / 64 = 2.4
    first, second = footage_of(before, after).pictures
    texture = Texture(3.0)
    texture.show(first, keyframe="first")
    held = texture.show(second, keyframe=None)[0]
    expected = before.copy()
    expected[32:, :32] = after[32:, :32]
    np.testing.assert_array_equal(held, expected)
    np.testing.assert_array_equal(texture.show(second, keyframe="periodic")[0], after)


@pytest.mark.parametrize("name", ["pedestrians", "bunny"])
@pytest.mark.parametrize("noise", [0.0, 1.5, 6.0])
def test_the_engine_finds_the_same_tiles_changed(name: str, noise: float, samples: Path) -> None:
    path, texture = samples / f"{name}.mp4", Texture(1.0, noise)
    with open_stream(str(path), change={"threshold": 1.0, "noise": noise}, source={"frames": 12}) as stream:
        for picture, chosen in zip(read_footage(path, 12).pictures, stream, strict=True):
            if chosen.keyframe is None:
                assert texture.changed(picture).mean() == pytest.approx(chosen.changed)
            texture.show(picture, chosen.keyframe)
