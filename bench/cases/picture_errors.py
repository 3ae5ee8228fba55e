"""Errors of the reader's picture: mean squares of its planes and of R'G'B', and SSIM."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Picture, Plane
from foveate.bench.reader.painting import decibels, mean_square

_LUMA_WEIGHTS: Final = (6, 1, 1)  # of the squared errors of Y, Cb and Cr in psnr_yuv
# BT.601, limited range: what one level of Y, Cb, Cr is worth in R', G' and B'.
_TO_RGB: Final = np.array([[1.164, 0.0, 1.596], [1.164, -0.392, -0.813], [1.164, 2.017, 0.0]], np.float32)
_WINDOW: Final = (11, 11)  # Wang et al. (2004), with a standard deviation of 1.5 pixels
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


class Errors(NamedTuple):
    """Of one frame: mean squares in 8-bit units squared, and the structural similarity of luma."""

    luma: float
    yuv: float  # of Y, Cb and Cr, weighted 6 : 1 : 1
    rgb: float
    ssim: float


def errors_of(picture: Picture, planes: Sequence[Plane]) -> Errors:
    """Compare the planes of a reader's picture with the true ones."""
    squares = [mean_square(plane, true) for plane, true in zip(planes, picture.planes, strict=True)]
    return Errors(
        squares[0],
        fmean(squares, _LUMA_WEIGHTS),
        rgb_error(planes, picture.planes),
        similarity(planes[0], picture.luma),
    )


def rgb_error(shown: Sequence[Plane], true: Sequence[Plane]) -> float:
    """Mean square over R', G' and B', by BT.601 before anything is clipped; chroma is repeated."""
    height, width = true[0].shape
    parts = []
    for one, other in zip(shown, true, strict=True):
        difference = one.astype(np.float32) - other
        if difference.shape != (height, width):
            difference = difference.repeat(2, axis=0).repeat(2, axis=1)[:height, :width]
        parts.append(difference.ravel())
    gram = np.array([[float(one @ other) for other in parts] for one in parts])
    return float(np.einsum("ci,ij,cj->", _TO_RGB, gram, _TO_RGB)) / (3 * height * width)


def similarity(shown: Plane, true: Plane) -> float:
    """SSIM (Wang et al. 2004, eq. 13), mean over the picture: 1 where both are the same."""
    one, other = shown.astype(np.float32), true.astype(np.float32)
    mean_one, mean_other = _blurred(one), _blurred(other)
    of_one = _blurred(one * one) - mean_one**2
    of_other = _blurred(other * other) - mean_other**2
    both = _blurred(one * other) - mean_one * mean_other
    top = (2 * mean_one * mean_other + _C1) * (2 * both + _C2)
    return float(np.mean(top / ((mean_one**2 + mean_other**2 + _C1) * (of_one + of_other + _C2)), dtype=np.float64))


def figures(errors: Sequence[Errors]) -> dict[str, Any]:
    """PSNR in dB of all frames: means, at most 60 a frame; pooled, of the mean squares; worst; and SSIM."""
    luma, yuv, rgb = ([decibels(getattr(each, kind)) for each in errors] for kind in ("luma", "yuv", "rgb"))
    ssim = [each.ssim for each in errors]
    return {
        "psnr_luma": fmean(luma),
        "psnr_luma_pooled": decibels(fmean(each.luma for each in errors)),
        "psnr_luma_least": min(luma),
        "psnr_luma_last": luma[-1],
        "psnr_yuv": fmean(yuv),
        "psnr_rgb": fmean(rgb),
        "psnr_rgb_pooled": decibels(fmean(each.rgb for each in errors)),
        "ssim": fmean(ssim),
        "ssim_least": min(ssim),
        "samples": {"psnr_luma": luma, "psnr_yuv": yuv, "psnr_rgb": rgb, "ssim": ssim},
    }


def _blurred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.GaussianBlur(values, _WINDOW, 1.5), np.float32)
