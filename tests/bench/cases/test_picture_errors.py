"""PSNR of R'G'B' and SSIM, against values that are worked out in another way."""

import numpy as np
import pytest

from foveate.bench.cases.picture_errors import Errors, figures, rgb_error, similarity


def test_a_grey_error_is_the_same_in_all_three() -> None:
    true = (np.full((4, 6), 50, np.uint8), *[np.full((2, 3), 128, np.uint8)] * 2)
    shown = (np.full((4, 6), 60, np.uint8), *true[1:])
    assert rgb_error(shown, true) == pytest.approx((1.164 * 10) ** 2, rel=1e-5)


def test_errors_of_luma_and_chroma_add_up_by_sample() -> None:
    # Cr off by 5 with Y off by -2 at all samples: R 5 * 1.596 - 2.328, G -5 * 0.813 - 2.328, B -2.328.
    true = (np.full((3, 3), 50, np.uint8), *[np.full((2, 2), 128, np.uint8)] * 2)
    shown = (np.full((3, 3), 48, np.uint8), true[1], np.full((2, 2), 133, np.uint8))
    squares = [(7.98 - 2.328) ** 2, (4.065 + 2.328) ** 2, 2.328**2]
    assert rgb_error(shown, true) == pytest.approx(sum(squares) / 3, rel=1e-4)


def test_similarity_of_plain_pictures_is_that_of_their_means() -> None:
    # No variance: (2 * 100 * 110 + C1) / (100^2 + 110^2 + C1), C1 = 6.5025.
    one, other = np.full((20, 20), 100, np.uint8), np.full((20, 20), 110, np.uint8)
    assert similarity(one, other) == pytest.approx(22006.5025 / 22106.5025, abs=1e-5)


def test_similarity_of_a_picture_with_itself_and_with_its_negative() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (32, 32)).astype(np.uint8)
    assert similarity(noise, noise) == pytest.approx(1)
    assert similarity(255 - noise, noise) < -0.5


def test_pooled_is_of_the_mean_square_and_worst_of_one_frame() -> None:
    measured = figures([Errors(100.0, 100.0, 100.0, 0.9), Errors(0.0, 0.0, 0.0, 1.0)])
    # 10 log10(65025 / 100) = 28.13; an exact frame counts 60; pooled: 10 log10(65025 / 50).
    assert measured["psnr_luma"] == pytest.approx((28.131 + 60) / 2, abs=1e-3)
    assert measured["psnr_luma_pooled"] == pytest.approx(31.141, abs=1e-3)
    assert measured["psnr_luma_least"] == pytest.approx(28.131, abs=1e-3)
    assert (measured["ssim"], measured["ssim_least"]) == (pytest.approx(0.95), 0.9)
