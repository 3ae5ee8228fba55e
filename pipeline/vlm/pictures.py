"""Pictures of a frame for models that take only pictures: a thumbnail, and sharp parts where the query matches.

A picture of W x H pixels costs ceil(W / s) * ceil(H / s) language-model tokens, where s * s are the pixels that a
token stands for: 28 * 28 with Qwen2-VL and Qwen2.5-VL (patches of 14 pixels, merged by 2), 32 * 32 with Qwen3-VL. Sizes
are whole multiples of s where the budget decides them.
"""

import math
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.geometry import Map
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.vlm.sharp_parts import Part, SharpParts

PIXELS: Final = 32 * 32
"""Pixels per language-model token, by default."""
_QUALITY: Final = 90  # of JPEG, of 100
_THUMBNAILS: Final = (0.25, 0.4, 0.6)  # shares of the budget that the whole picture gets at least beside sharp parts
_FINEST_LODS: Final = 1  # tokens up to this LOD say where the parts lie
_FAINT: Final = 0.1  # if no participation exceeds this, no part is sent
_SHARE: Final = 0.5  # of the highest participation; tokens with less do not count
_AROUND: Final = 0.05  # weight of the cells around those that match the query
_WORTH: Final = 0.8  # of the error of one picture of the same budget in the matching cells: parts must leave less
_NEAR: Final = 0.25  # of the picture's longer side: beyond this distance from the gaze nothing counts


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture to be sent."""

    rgb: NDArray[np.uint8]  # [height, width, 3], R'G'B'
    box: tuple[int, int, int, int] | None  # left, top, right, bottom, in thousandths of the frame; None: all of it
    tokens: int  # of the language model

    def jpeg(self) -> bytes:
        """As a file."""
        done, coded = cv2.imencode(".jpg", self.rgb[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
        assert done
        return coded.tobytes()


def tokens_of(width: int, height: int, pixels_per_token: int = PIXELS) -> int:
    """Language-model tokens of a picture, by the formula above."""
    side = math.sqrt(pixels_per_token)
    return math.ceil(width / side) * math.ceil(height / side)


def pictures_of(
    selection: Selection,
    budget: int,
    rgb: NDArray[np.uint8] | None = None,
    *,
    gaze: tuple[float, float] | None = None,
    pixels_per_token: int = PIXELS,
) -> list[Picture]:
    """What to send of a frame for at most ``budget`` language-model tokens.

    Without a query or a ``gaze``, (x, y) in pixels, that is the frame, made smaller where the budget asks for it. With
    one, it is a thumbnail and at most three parts at the frame's own resolution or half of it: of several thumbnails
    and parts those that leave the least squared error where the tokens of LOD 0 and 1 with the highest participation
    are, or what is nearest to the gaze. There are no parts where nothing stands out, where the whole frame fits, and
    where they would not leave less of that error, by a fifth, than the one picture.

    ``rgb``, uint8[height, width, 3] in R'G'B', is the frame; by default what the Selection's patches paint.

    Raises ValueError for a budget or ``pixels_per_token`` below 1, for ``rgb`` of another shape, and without patches
    and ``rgb``.
    """
    if budget < 1 or pixels_per_token < 1:
        raise ValueError(f"budget and pixels_per_token must be at least 1, got {budget} and {pixels_per_token}")
    frame = selection.paint() if rgb is None else rgb
    if frame.shape != (selection.height, selection.width, 3):
        raise ValueError(f"rgb must be of shape {(selection.height, selection.width, 3)}, got {frame.shape}")
    if tokens_of(selection.width, selection.height, pixels_per_token) <= budget:
        return [_whole(frame, budget, pixels_per_token)]
    plain = _whole(frame, budget, pixels_per_token)
    asked = _interest(selection, gaze)
    return [plain] if not asked.any() else _beside_parts(frame, asked, plain, budget, pixels_per_token)


def _beside_parts(
    frame: NDArray[np.uint8], asked: Map, plain: Picture, budget: int, pixels_per_token: int
) -> list[Picture]:
    """A thumbnail and parts, or ``plain`` if that shows the matching cells about as well."""
    around = np.maximum(asked, _AROUND * cv2.dilate(asked, np.ones((3, 3), np.uint8)))
    search = SharpParts(frame, around, math.sqrt(pixels_per_token))
    wholes = [_whole(frame, max(1, round(budget * share)), pixels_per_token) for share in _THUMBNAILS]
    parts = search.choose([(whole.tokens, whole.rgb) for whole in wholes], budget)
    whole = _whole(frame, budget - sum(part.tokens for part in parts), pixels_per_token)
    after, before = search.error(whole.rgb, parts), search.error(plain.rgb)
    where = asked > 0
    alike = [float((error[where] / asked[where]).sum()) for error in (after, before)]  # each cell counts as much
    if after.sum() > _WORTH * before.sum() or alike[0] > alike[1]:
        return [plain]
    return [whole, *(_crop(frame, part) for part in parts)]


def _whole(frame: NDArray[np.uint8], budget: int, pixels_per_token: int) -> Picture:
    """The whole frame, reduced, never enlarged."""
    height, width, _ = frame.shape
    tokens = tokens_of(width, height, pixels_per_token)
    if tokens <= budget:
        return Picture(frame, None, tokens)
    side = math.sqrt(pixels_per_token)
    rows, columns = _blocks(height / width, budget)
    size = max(1, math.floor(columns * side)), max(1, math.floor(rows * side))
    return Picture(cv2.resize(frame, size, interpolation=cv2.INTER_AREA), None, rows * columns)  # type: ignore[arg-type]


def _blocks(aspect: float, budget: int) -> tuple[int, int]:
    """Rows and columns of a picture of about this aspect, height / width, with the most blocks within the budget."""
    best = (1, 1)
    for rows in range(1, math.isqrt(math.ceil(budget * aspect)) + 2):
        for columns in (math.floor(rows / aspect), math.ceil(rows / aspect)):
            if best[0] * best[1] < rows * columns <= budget:
                best = rows, columns
    return best


def _interest(selection: Selection, gaze: tuple[float, float] | None) -> Map:
    """How much each cell matters, float32[grid], by the query or the gaze; zeros without either."""
    rows, columns = selection.grid
    interest = np.zeros((rows, columns), np.float32)
    if gaze is not None:
        y, x = np.mgrid[:rows, :columns] * PATCH + PATCH / 2
        distance = np.hypot(x - gaze[0], y - gaze[1]) / (_NEAR * max(selection.width, selection.height))
        return np.maximum(1 - distance, 0).astype(np.float32)
    if selection.participation is None:
        return interest
    fine = selection.lod <= _FINEST_LODS
    highest = selection.participation[fine].max(initial=0)
    counted = selection.participation >= _SHARE * highest
    if highest < _FAINT:
        return interest
    for index in np.flatnonzero(counted):
        cells = 1 << int(selection.lod[index])
        row, column = (
            (int(centre) - cells * PATCH // 2) // PATCH for centre in (selection.y[index], selection.x[index])
        )
        covered = interest[max(row, 0) : row + cells, max(column, 0) : column + cells]
        np.maximum(covered, selection.participation[index], out=covered)
    return interest


def _crop(frame: NDArray[np.uint8], part: Part) -> Picture:
    height, width, _ = frame.shape
    box = part.box
    pixels = np.ascontiguousarray(frame[box.top : box.bottom, box.left : box.right])
    if part.scale != 1:
        size = [max(1, round(part.scale * length)) for length in pixels.shape[1::-1]]
        pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)  # type: ignore[assignment]
    ends = zip(box, (width, height) * 2, strict=True)
    thousandths = tuple(round(1000 * end / whole) for end, whole in ends)
    return Picture(pixels, thousandths, part.tokens)
