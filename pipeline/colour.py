"""From planes to R'G'B', by the stream's own matrix and range."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour, FrameView, Matrix, Plane

Samples = NDArray[np.uint8] | NDArray[np.float32]

_KR_KB: Final[dict[Matrix, tuple[float, float]]] = {
    "bt601": (0.299, 0.114),  # ITU-R BT.601-7 (2011), 2.5.1
    "bt709": (0.2126, 0.0722),  # ITU-R BT.709-6 (2015), item 3.2
    "bt2020": (0.2627, 0.0593),  # ITU-R BT.2020-2 (2015), table 4, non-constant luminance
}


def matrix_of(colour: Colour) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Matrix M float64[3, 3] and offsets o float64[3]: (R, G, B) = M @ ((Y, Cb, Cr) - o), all in 8-bit units.

    E'Cb = (B - Y) / (2 - 2 Kb) and E'Cr = (R - Y) / (2 - 2 Kr), solved for R, G, B (ITU-R BT.601-7, 2.5.1);
    limited range puts luma on 16..235 and chroma on 16..240, full range both on 0..255 (2.5.3; JFIF 1.02).
    """
    kr, kb = _KR_KB[colour.matrix]
    kg = 1.0 - kr - kb
    blue, red = 2.0 - 2.0 * kb, 2.0 - 2.0 * kr
    unit = np.array([[1.0, 0.0, red], [1.0, -kb / kg * blue, -kr / kg * red], [1.0, blue, 0.0]])
    if colour.full_range:
        return unit, np.array([0.0, 128.0, 128.0])
    spans = np.array([219.0, 224.0, 224.0])
    return unit * (255.0 / spans), np.array([16.0, 128.0, 128.0])


def to_rgb(luma: Samples, cb: Samples | None, cr: Samples | None, colour: Colour) -> NDArray[np.uint8]:
    """R'G'B' uint8[..., 3] of planes [...] of one shape, uint8 or float32 in 8-bit units.

    Rounded to nearest and clipped. Without chroma the result is grey: R = G = B.
    """
    rgb = np.empty((*luma.shape, 3), np.uint8)
    if luma.size == 0:
        return rgb
    row = rgb.reshape(1, -1, 3)  # a view
    matrix, offsets = matrix_of(colour)
    shift = -matrix @ offsets
    y = luma.reshape(1, -1)
    if cb is None or cr is None:
        grey = cv2.addWeighted(y, matrix[0, 0], y, 0.0, -matrix[0, 0] * offsets[0], dtype=cv2.CV_8U)
        cv2.merge([grey, grey, grey], row)
        return rgb
    blue, red = cb.reshape(1, -1), cr.reshape(1, -1)
    r = cv2.addWeighted(y, matrix[0, 0], red, matrix[0, 2], shift[0], dtype=cv2.CV_8U)
    b = cv2.addWeighted(y, matrix[2, 0], blue, matrix[2, 1], shift[2], dtype=cv2.CV_8U)
    without_red = cv2.addWeighted(y, matrix[1, 0], blue, matrix[1, 1], shift[1], dtype=cv2.CV_32F)
    red = red.astype(np.float32, copy=False)
    g = cv2.addWeighted(without_red, 1.0, red, matrix[1, 2], 0.0, dtype=cv2.CV_8U)
    cv2.merge([r, g, b], row)
    return rgb


def picture_rgb(frame: FrameView) -> NDArray[np.uint8]:
    """The whole picture as R'G'B' uint8[H, W, 3].

    4:2:0 chroma is upsampled bilinearly, its samples taken to lie in the centre of each 2x2 block.
    """
    if frame.chroma is None:
        return to_rgb(frame.luma, None, None, frame.colour)
    cb, cr = (_upsampled(plane, frame.height, frame.width) for plane in frame.chroma)
    return to_rgb(frame.luma, cb, cr, frame.colour)


def _upsampled(plane: Plane, height: int, width: int) -> Plane:
    """A chroma plane at the luma's size; a plane that has it already is returned as it is."""
    rows, columns = plane.shape
    if (rows, columns) == (height, width):
        return plane
    double = cv2.resize(plane, (2 * columns, 2 * rows), interpolation=cv2.INTER_LINEAR)
    return np.ascontiguousarray(double[:height, :width])
