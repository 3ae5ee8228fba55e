"""Pictures for models that take nothing else: within the budget, sharp where something was asked for."""

import dataclasses
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.bench.cases.pictures import painted
from foveate.pipeline import open_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.pictures import Picture, pictures_of, tokens_of
from tests.pipeline.vlm_selections import selection_of

WIDTH, HEIGHT = 640, 480
RGB = np.random.default_rng(3).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def asked_at(*cells: tuple[int, int], value: float = 0.8, lod: int = 0) -> Selection:
    """Tokens of one LOD at these cells (row, column), each with the same participation; the rest is coarse, with 0."""
    side = 16 << lod
    fine = [(lod, 16 * column + side // 2, 16 * row + side // 2) for row, column in cells]
    selection = selection_of(WIDTH, HEIGHT, [(4, 128, 128), *fine], patches=False)
    participation = np.array([0.0, *[value] * len(cells)], np.float32)
    return dataclasses.replace(selection, participation=participation)


def pixels(picture: Picture) -> tuple[slice, slice]:
    """Where in RGB a part lies, found by its own pixels."""
    assert picture.box is not None
    left, top = round(picture.box[0] * WIDTH / 1000), round(picture.box[1] * HEIGHT / 1000)
    height, width, _ = picture.rgb.shape
    for row in (top, top - 1, top + 1):  # a thousandth of the width is 0.64 pixels
        for column in (left, left - 1, left + 1):
            if np.array_equal(RGB[max(row, 0) : row + height, max(column, 0) : column + width], picture.rgb):
                return slice(row, row + height), slice(column, column + width)
    raise AssertionError(f"the part {picture.box} shows something else")


@pytest.mark.parametrize(
    ("width", "height", "side", "tokens"),
    [(640, 480, 32, 300), (641, 480, 32, 315), (644, 476, 28, 391), (1, 1, 28, 1), (1920, 1080, 28, 2691)],
)
def test_tokens_are_counted_by_the_formula(width: int, height: int, side: int, tokens: int) -> None:
    assert tokens_of(width, height, side * side) == tokens


@pytest.mark.parametrize("budget", [1, 2, 7, 68, 150, 299])
@pytest.mark.parametrize("side", [28, 32])
def test_without_a_query_it_is_one_picture_within_the_budget(budget: int, side: int) -> None:
    (picture,) = pictures_of(selection_of(WIDTH, HEIGHT, [(4, 128, 128)], False), budget, RGB, pixels_per_token=side**2)
    height, width, _ = picture.rgb.shape
    assert (picture.box, picture.tokens) == (None, -(-width // side) * -(-height // side))
    assert budget / 2 <= picture.tokens <= budget
    assert width % side == height % side == 0
    if budget >= 7:
        assert 0.75 < (width / height) / (WIDTH / HEIGHT) < 4 / 3


@pytest.mark.parametrize("budget", [300, 1000])
def test_a_frame_that_fits_is_sent_as_it_is(budget: int) -> None:
    (picture,) = pictures_of(asked_at((5, 5)), budget, RGB)
    assert picture.tokens == 300
    np.testing.assert_array_equal(picture.rgb, RGB)


def test_a_cluster_becomes_a_sharp_part_beside_a_thumbnail() -> None:
    cells = [(row, column) for row in (10, 11, 12) for column in (20, 21, 22, 23)]
    thumbnail, part = pictures_of(asked_at(*cells), 68, RGB)
    assert thumbnail.box is None
    assert thumbnail.tokens == 48  # 6 x 8, of the 59 that the part leaves: 7 x 9 are more
    rows, columns = pixels(part)
    assert (rows.start <= 160, rows.stop >= 208) == (True, True)
    assert (columns.start <= 320, columns.stop >= 384) == (True, True)
    assert part.tokens == 9  # with the cells around it 80 x 96 pixels, in blocks of 32
    assert part.box == (475, 283, 625, 483)


def test_three_clusters_become_three_parts_and_a_fourth_waits() -> None:
    places = [(0, 2), (0, 38), (29, 2), (29, 38)]
    selection = asked_at(*places)
    participation = np.array([0, 0.9, 0.5, 0.8, 0.7], np.float32)
    thumbnail, *parts = pictures_of(dataclasses.replace(selection, participation=participation), 68, RGB)
    assert len(parts) == 3
    held = [any(_holds(part, place) for part in parts) for place in places]
    assert held == [True, False, True, True]
    assert thumbnail.tokens + sum(part.tokens for part in parts) <= 68


def _holds(part: Picture, cell: tuple[int, int]) -> bool:
    rows, columns = pixels(part)
    return all(
        where.start <= 16 * at and 16 * at + 16 <= where.stop for where, at in zip((rows, columns), cell, strict=True)
    )


def test_tokens_of_lod_1_count_with_all_that_they_cover() -> None:
    _, part = pictures_of(asked_at((4, 4), lod=1), 68, RGB)
    assert all(_holds(part, cell) for cell in [(4, 4), (4, 5), (5, 4), (5, 5)])


@pytest.mark.parametrize(
    "selection",
    [asked_at((4, 4), lod=2), asked_at((4, 4), value=0.05), asked_at(), asked_at((4, 4), value=0.0)],
    ids=["coarse", "faint", "none", "zero"],
)
def test_where_nothing_stands_out_there_is_no_part(selection: Selection) -> None:
    (picture,) = pictures_of(selection, 68, RGB)
    assert (picture.box, picture.tokens) == (None, 63)


def test_where_no_part_fits_there_is_none() -> None:
    (picture,) = pictures_of(asked_at((4, 4)), 1, RGB)
    assert (picture.box, picture.tokens) == (None, 1)


@pytest.mark.parametrize("rows", [4, 8, 18, 30])
def test_of_what_is_too_large_what_fits_is_shown_without_loss_elsewhere(rows: int) -> None:
    """About 51 tokens of 32 x 32 pixels are left for parts, which is 204 cells; a row has 25 of them."""
    wide = [(row, column) for row in range(rows) for column in range(5, 30)]
    selection = asked_at(*wide)
    shown = pictures_of(selection, 68, RGB)
    assert len(shown) <= 4
    assert sum(picture.tokens for picture in shown) <= 68
    assert len({picture.box for picture in shown}) == len(shown)
    one = pictures_of(dataclasses.replace(selection, participation=None), 68, RGB)
    marked = np.zeros((HEIGHT, WIDTH), bool)
    marked[: 16 * rows, 80:480] = True
    errors = _error(shown, RGB, marked), _error(one, RGB, marked)
    assert errors[0] < errors[1] * 0.8 or len(shown) == 1
    assert len(shown) > 1 or rows == 30  # 204 of 750 cells are a fourth, and noise is half as wrong reduced


@pytest.mark.parametrize("seed", range(30))
def test_parts_never_show_what_is_asked_for_worse_than_one_picture(seed: int) -> None:
    """Of any asked cells, frame, budget and size of a token."""
    rng = np.random.default_rng(seed)
    width, height = (int(n) for n in rng.integers(100, 700, 2))
    coarse = rng.integers(0, 256, (height // int(rng.integers(3, 40)) + 1, width // 20 + 1, 3), np.uint8)
    rgb: Any = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    rows, columns = -(-height // 16), -(-width // 16)
    cells = sorted({(int(rng.integers(rows)), int(rng.integers(columns))) for _ in range(int(rng.integers(1, 60)))})
    tokens = [(0, 16 * column + 8, 16 * row + 8) for row, column in cells]
    selection = selection_of(width, height, tokens, patches=False)
    participation = rng.uniform(0.5, 1, len(cells)).astype(np.float32)
    selection = dataclasses.replace(selection, participation=participation)
    budget, side = int(rng.integers(1, 100)), int(rng.integers(16, 40))
    shown = pictures_of(selection, budget, rgb, pixels_per_token=side * side)
    one = pictures_of(dataclasses.replace(selection, participation=None), budget, rgb, pixels_per_token=side * side)
    assert sum(-(-p.rgb.shape[1] // side) * -(-p.rgb.shape[0] // side) for p in shown) <= budget
    marked = np.zeros((rows * 16, columns * 16), bool)
    for row, column in cells:
        marked[16 * row : 16 * row + 16, 16 * column : 16 * column + 16] = True
    marked = marked[:height, :width]
    assert _error(shown, rgb, marked) <= _error(one, rgb, marked) * 1.001  # a box's ends are rounded to thousandths


@pytest.mark.parametrize("corner", [(0, 0), (0, 39), (29, 0), (29, 39)])
@pytest.mark.parametrize("side", [28, 32])
def test_at_the_border_parts_stay_within_the_picture(corner: tuple[int, int], side: int) -> None:
    _, part = pictures_of(asked_at(corner), 68, RGB, pixels_per_token=side * side)
    assert part.box is not None
    assert min(part.box) >= 0
    assert max(part.box) <= 1000
    assert part.rgb.shape == ((56, 56, 3) if side == 28 else (32, 32, 3))  # the cell and its neighbours, 2 x 2 cells
    assert _holds(part, corner)


def test_the_gaze_is_looked_at_without_a_query() -> None:
    _, *parts = pictures_of(selection_of(WIDTH, HEIGHT, [(4, 128, 128)], False), 68, RGB, gaze=(500.0, 100.0))
    rows, columns = pixels(parts[0])
    assert (rows.start < 100 < rows.stop, columns.start < 500 < columns.stop) == (True, True)


def test_without_the_frame_it_is_what_the_tokens_paint() -> None:
    selection = selection_of(64, 48, [(2, 32, 32)])
    (picture,) = pictures_of(selection, 10)
    np.testing.assert_array_equal(picture.rgb, selection.paint())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": 0}, "budget and pixels_per_token must be at least 1, got 0 and 1024"),
        ({"pixels_per_token": 0}, "got 68 and 0"),
        ({"rgb": RGB[1:]}, r"rgb must be of shape \(480, 640, 3\), got \(479, 640, 3\)"),
        ({"rgb": None}, "no patches"),
    ],
)
def test_what_is_wrong_is_told(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        pictures_of(**{"selection": asked_at((1, 1)), "budget": 68, "rgb": RGB, **given})


def test_a_picture_becomes_a_jpeg_of_the_same_colours() -> None:
    plain = np.full((32, 64, 3), (250, 20, 90), np.uint8)
    decoded: Any = cv2.imdecode(np.frombuffer(Picture(plain, None, 2).jpeg(), np.uint8), cv2.IMREAD_COLOR)
    assert np.abs(decoded[..., ::-1].astype(int) - plain).max() <= 3  # one colour: JPEG loses a level or two


@pytest.mark.parametrize(("clip", "times"), [("pedestrians", 8), ("tree", 100), ("bunny", 1)])
def test_what_moves_is_sharper_than_in_one_picture_of_the_same_budget(clip: str, times: int, samples: Path) -> None:
    """Where the flow's mark lies the mean squared error falls to a fraction, and in no frame it grows.

    In bunny the whole picture moves, and what is asked for is what the tokens say.
    """
    errors = np.zeros(2)
    settings: dict[str, Any] = {"query": ["moving"], "source": {"every": 10, "frames": 9}}
    with open_stream(str(samples / f"{clip}.mp4"), maps=("query",), budget=272, **settings) as stream:
        for selection in stream:
            assert stream.frame is not None
            rgb = stream.frame.rgb()
            pictures = pictures_of(selection, 68, rgb)
            assert sum(picture.tokens for picture in pictures) <= 68
            plain = pictures_of(dataclasses.replace(selection, participation=None), 68, rgb)
            if len(pictures) > 1:
                height, width, _ = rgb.shape
                marked = np.kron(selection.maps["query"] > 0.5, np.ones((16, 16), bool))[:height, :width]
                marked = _tokens(selection) if clip == "bunny" else marked
                both = np.array([_error(shown, rgb, marked) for shown in (plain, pictures)])
                assert both[1] <= both[0]
                errors += both
    assert errors[0] > 0
    assert errors[1] < errors[0] / times


def _tokens(selection: Selection) -> NDArray[np.bool_]:
    """Pixels under those that take part at least half as much as the one of LOD 0 or 1 that does most."""
    marked = np.zeros((selection.height, selection.width), bool)
    participation: Any = selection.participation
    for x, y, lod in zip(*(each[participation >= participation[selection.lod < 2].max() / 2] for each in
                           (selection.x, selection.y, selection.lod)), strict=True):  # fmt: skip
        half = 8 << int(lod)
        marked[max(0, y - half) : y + half, max(0, x - half) : x + half] = True
    return marked


def _error(pictures: list[Picture], rgb: NDArray[np.uint8], marked: NDArray[np.bool_]) -> float:
    """Mean squared error, where it is marked, of what the pictures show together."""
    seen = painted(pictures, rgb.shape)
    return float(((seen[marked].astype(float) - rgb[marked]) ** 2).mean())
