"""The picture with its tokens: an outline per token in its LOD's colour, brighter where detail was spent."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.selection.painting import Image

Map = NDArray[np.uint8]  # [height, width]

LODS: Final = 5  # with looks of their own; coarser tokens look like the last
COLOURS: Final = np.array(  # RGB per LOD; bright and warm is fine, dull and cold is coarse
    [(255, 214, 64), (92, 232, 132), (56, 196, 244), (118, 136, 255), (170, 128, 214)], np.uint8
)
_OPACITY: Final = np.array([1.0, 0.8, 0.6, 0.5, 0.45], np.float32)  # of the outlines, per LOD
_BRIGHTNESS: Final = (255, 225, 190, 160, 140)  # of the picture under a token, per LOD; 255 is unchanged
_BRIGHTNESS_WITHOUT: Final = 96  # where there is no token
_STEP: Final = PATCH // 2  # level-0 pixels per cell of the brightness map: tokens' edges are multiples of it


def draw_tokens(image: Image, selection: Selection) -> None:
    """Shade ``image``, the selection's picture at any scale, and draw the tokens' outlines on it, in place."""
    shade = cv2.cvtColor(_brightness(selection, image.shape), cv2.COLOR_GRAY2RGB)
    cv2.multiply(image, shade, image, scale=1 / 255)
    looks = _outlines(selection, image.shape)
    rows, columns = np.nonzero(looks)
    look = looks[rows, columns] - 1
    opacity = _OPACITY[look][:, None]
    image[rows, columns] = np.rint(opacity * COLOURS[look] + (1 - opacity) * image[rows, columns])


def _present(selection: Selection) -> list[int]:
    """The LODs that there are, the coarsest first."""
    present: list[int] = np.unique(selection.lod)[::-1].tolist()
    return present


def _look(lod: int) -> int:
    return min(lod, LODS - 1)


def _outlines(selection: Selection, shape: tuple[int, ...]) -> Map:
    """uint8[height, width]: 1 + look of the LOD on the tokens' outlines, the finest on top; 0 elsewhere."""
    height, width = shape[:2]
    across, down = width / selection.width, height / selection.height
    looks = np.zeros((height, width), np.uint8)
    for lod in _present(selection):
        left, top, right, bottom = _edges(selection, lod)
        x0 = np.clip(np.rint(left * across), 0, width - 1)
        x1 = np.clip(np.rint(right * across) - 1, 0, width - 1)
        y0 = np.clip(np.rint(top * down), 0, height - 1)
        y1 = np.clip(np.rint(bottom * down) - 1, 0, height - 1)
        corners = np.stack([x0, y0, x1, y0, x1, y1, x0, y1], -1).astype(np.int32).reshape(-1, 4, 2)
        cv2.polylines(looks, list(corners), isClosed=True, color=_look(lod) + 1)
    return looks


def _brightness(selection: Selection, shape: tuple[int, ...]) -> Map:
    """uint8[height, width]: how bright the picture is shown, by the finest token that covers a place."""
    rows, columns = -(-selection.height // _STEP), -(-selection.width // _STEP)
    coarse = np.full((rows, columns), _BRIGHTNESS_WITHOUT, np.uint8)
    for lod in _present(selection):
        coarse[_covered(_edges(selection, lod), rows, columns)] = _BRIGHTNESS[_look(lod)]
    return enlarged(coarse, _STEP, selection, shape, cv2.INTER_NEAREST)


def _covered(edges: NDArray[np.int64], rows: int, columns: int) -> NDArray[np.bool_]:
    """bool[rows, columns]: covered by a rectangle. Corners are counted up and down, then summed (Crow 1984)."""
    left, right = (np.clip(edge // _STEP, 0, columns) for edge in (edges[0], edges[2]))
    top, bottom = (np.clip(edge // _STEP, 0, rows) for edge in (edges[1], edges[3]))
    corners = np.zeros((rows + 1, columns + 1), np.int32)
    for y, x, sign in ((top, left, 1), (bottom, right, 1), (top, right, -1), (bottom, left, -1)):
        np.add.at(corners, (y, x), sign)
    return corners.cumsum(0).cumsum(1)[:rows, :columns] > 0


def _edges(selection: Selection, lod: int) -> NDArray[np.int64]:
    """int64[4, n]: left, top, right, bottom of the LOD's tokens in level-0 pixels, right and bottom exclusive."""
    chosen = selection.lod == lod
    x, y = selection.x[chosen].astype(np.int64), selection.y[chosen].astype(np.int64)
    half = PATCH * 2**lod // 2
    return np.stack([x - half, y - half, x + half, y + half])


def enlarged(coarse: Map, step: int, selection: Selection, shape: tuple[int, ...], method: int) -> Map:
    """A map with one value per ``step`` x ``step`` level-0 pixels, at the scale of an image of ``shape``.

    What lies beyond the picture, in its padding, is cut off. ``method`` is OpenCV's interpolation.
    """
    height, width = shape[:2]
    across, down = selection.width / width / step, selection.height / height / step
    back = np.array([[across, 0, across / 2 - 0.5], [0, down, down / 2 - 0.5]])  # pixel centre to pixel centre
    image = np.empty((height, width), np.uint8)
    flags = method | cv2.WARP_INVERSE_MAP
    cv2.warpAffine(coarse, back, (width, height), image, flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return image
