"""Colour: textbook values, the published formulas written out again, chroma placement, odd sizes."""

import itertools

import numpy as np
import pytest

from foveate.pipeline.colour import matrix_of, picture_rgb, to_rgb
from foveate.pipeline.frames import Colour, Frame, Matrix

MATRICES: tuple[Matrix, ...] = ("bt601", "bt709", "bt2020")
# Kr, Kb as printed in ITU-R BT.601-7, BT.709-6 and BT.2020-2.
WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}
COLOURS = [Colour(matrix, full) for matrix in MATRICES for full in (False, True)]


def encode(rgb: tuple[int, int, int], colour: Colour) -> tuple[float, float, float]:
    """The forward formulas of the Recommendations: R'G'B' in 8-bit units to unrounded Y, Cb, Cr."""
    kr, kb = WEIGHTS[colour.matrix]
    r, g, b = (value / 255 for value in rgb)
    y = kr * r + (1 - kr - kb) * g + kb * b
    cb, cr = (b - y) / (2 * (1 - kb)), (r - y) / (2 * (1 - kr))
    if colour.full_range:
        return 255 * y, 255 * cb + 128, 255 * cr + 128
    return 219 * y + 16, 224 * cb + 128, 224 * cr + 128


@pytest.mark.parametrize(
    ("colour", "ycc", "rgb"),
    [
        (Colour("bt709"), (63, 102, 240), (255, 0, 0)),  # the 100% bars of SMPTE RP 219
        (Colour("bt709"), (173, 42, 26), (0, 255, 0)),
        (Colour("bt709"), (32, 240, 118), (0, 0, 255)),
        (Colour("bt601"), (81, 90, 240), (255, 0, 0)),  # the 100% bars of BT.801
        (Colour("bt601"), (145, 54, 34), (0, 255, 0)),
        (Colour("bt601"), (41, 240, 110), (0, 0, 255)),
        (Colour("bt601", full_range=True), (76, 85, 255), (255, 0, 0)),  # JFIF
        (Colour("bt601"), (235, 128, 128), (255, 255, 255)),
        (Colour("bt2020"), (16, 128, 128), (0, 0, 0)),
        (Colour("bt2020", full_range=True), (255, 128, 128), (255, 255, 255)),
    ],
)
def test_textbook_colours(colour: Colour, ycc: tuple[int, int, int], rgb: tuple[int, int, int]) -> None:
    y, cb, cr = (np.full((2, 3), value, np.uint8) for value in ycc)
    got = to_rgb(y, cb, cr, colour)
    assert got.shape == (2, 3, 3)
    assert got.dtype == np.uint8
    # The textbook triplets are rounded to whole codes; a code is worth at most 2.2 R'G'B' units, so half of
    # one in chroma and in luma moves a primary by no more than 2.
    assert np.abs(got.astype(int) - rgb).max() <= 2


@pytest.mark.parametrize("colour", COLOURS, ids=str)
def test_unrounded_codes_come_back_exactly(colour: Colour) -> None:
    corners = list(itertools.product((0, 1, 37, 128, 200, 255), repeat=3))
    ycc = np.array([encode(rgb, colour) for rgb in corners], np.float32)
    got = to_rgb(ycc[:, 0], ycc[:, 1], ycc[:, 2], colour)
    np.testing.assert_array_equal(got, np.array(corners))


@pytest.mark.parametrize("colour", COLOURS, ids=str)
def test_every_code_is_the_formula_rounded(colour: Colour) -> None:
    y, cb, cr = np.meshgrid(*[np.arange(0, 256, 5)] * 3, indexing="ij")
    kr, kb = WEIGHTS[colour.matrix]
    span_y, span_c, foot = (255, 255, 0) if colour.full_range else (219, 224, 16)
    luma, blue, red = (y - foot) / span_y, (cb - 128) / span_c, (cr - 128) / span_c
    r = luma + 2 * (1 - kr) * red
    b = luma + 2 * (1 - kb) * blue
    g = (luma - kr * r - kb * b) / (1 - kr - kb)
    exact = 255 * np.stack([r, g, b], -1)
    got = to_rgb(y.astype(np.uint8), cb.astype(np.uint8), cr.astype(np.uint8), colour)
    # Nearest whole number; float32 sums of values below 1024 err by less than 1e-3.
    assert np.abs(got - np.clip(exact, 0, 255)).max() <= 0.5 + 1e-3


@pytest.mark.parametrize("full", [False, True])
def test_without_chroma_grey(full: bool) -> None:
    luma = np.arange(256, dtype=np.uint8).reshape(4, 8, 8)
    got = to_rgb(luma, None, None, Colour("bt709", full))
    codes = np.arange(256.0) if full else (np.arange(256.0) - 16) * 255 / 219
    assert got.shape == (4, 8, 8, 3)
    assert np.ptp(got, axis=-1).max() == 0
    assert np.abs(got[..., 0].ravel() - np.clip(codes, 0, 255)).max() <= 0.5 + 1e-3


def test_planes_are_left_alone_and_float_is_not_rounded_first() -> None:
    luma, chroma = np.full((5,), 100.4, np.float32), np.full((5,), 128, np.float32)
    got = to_rgb(luma, chroma, chroma, Colour("bt601"))
    assert set(got.ravel()) == {98}  # (100.4 - 16) * 255 / 219 = 98.27; from 100 it would be 97.81
    assert luma[0] == np.float32(100.4)


@pytest.mark.parametrize("shape", [(0, 16, 16), (1,), (3, 1, 2), (2, 16, 16)])
def test_any_leading_shape(shape: tuple[int, ...]) -> None:
    plane = np.full(shape, 128, np.uint8)
    got = to_rgb(plane, plane, plane, Colour("bt601", full_range=True))
    assert got.shape == (*shape, 3)
    assert (got == 128).all()


@pytest.mark.parametrize("size", [(1, 1), (1, 17), (31, 639), (241, 321), (240, 320)])
@pytest.mark.parametrize("kind", ["4:2:0", "4:4:4", "grey"])
def test_picture_at_odd_sizes(size: tuple[int, int], kind: str) -> None:
    height, width = size
    half = (height + 1) // 2, (width + 1) // 2
    at = size if kind == "4:4:4" else half
    chroma = None if kind == "grey" else (np.full(at, 90, np.uint8), np.full(at, 240, np.uint8))
    frame = Frame(0, 0.0, np.full(size, 81, np.uint8), chroma, Colour("bt601"))
    got = picture_rgb(frame)
    assert got.shape == (height, width, 3)
    expected = (76, 76, 76) if kind == "grey" else (254, 0, 0)
    assert np.abs(got.astype(int) - expected).max() <= 1


def test_chroma_lies_in_the_centre_of_its_block() -> None:
    cr = np.array([[128, 192]], np.uint8)
    cb = np.full((1, 2), 128, np.uint8)
    frame = Frame(0, 0.0, np.full((2, 4), 128, np.uint8), (cb, cr), Colour("bt601", full_range=True))
    red = picture_rgb(frame)[0, :, 0].astype(int)
    # Quarter and three-quarter weights between the two samples: Cr 128, 144, 176, 192.
    np.testing.assert_array_equal(red, [128, round(128 + 1.402 * 16), round(128 + 1.402 * 48), 218])


def test_matrix_and_offsets_of_bt601_limited() -> None:
    matrix, offsets = matrix_of(Colour("bt601"))
    assert offsets.tolist() == [16, 128, 128]
    # The coefficients every textbook prints, to three decimals.
    np.testing.assert_allclose(matrix, [[1.164, 0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0]], atol=6e-4)
