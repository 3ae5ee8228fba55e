"""A Selection as pictures for people: its tokens on the frame, and HTML for notebooks."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Final

import cv2
import numpy as np

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection.drawing import draw_tokens
from foveate.pipeline.selection.painting import Image, blank

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from foveate.pipeline.selection import Selection

_LONGEST: Final = 480  # pixels of the longer side of a picture in a notebook
_QUALITY: Final = 85  # of 100, JPEG
_GAP: Final = 8  # white pixels between two pictures


def drawn(selection: Selection, picture: FrameView | NDArray[np.uint8]) -> Image:
    """See Selection.draw."""
    if isinstance(picture, np.ndarray):
        if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3 or not picture.size:
            raise ValueError(f"the picture must be uint8[H, W, 3], got {picture.dtype}{list(picture.shape)}")
        image = np.ascontiguousarray(picture).copy()
    elif (picture.width, picture.height) == (selection.width, selection.height):
        image = picture.rgb()
    else:
        raise ValueError(
            f"the frame must be of {selection.width}x{selection.height} pixels, as the selection's, "
            f"got {picture.width}x{picture.height}"
        )
    draw_tokens(image, selection)
    return image


def html_of(selection: Selection) -> str:
    """See Selection._repr_html_: one JPEG in a data address, and the figures below it."""
    scale = min(1.0, _LONGEST / max(selection.width, selection.height))
    size = max(1, round(scale * selection.width)), max(1, round(scale * selection.height))
    pictures = [blank(*size)]
    if selection.patches is not None:
        pictures[0] = np.asarray(cv2.resize(selection.paint(), size, interpolation=cv2.INTER_AREA), np.uint8)
    layout = drawn(selection, pictures[0])
    pictures = [layout] if selection.patches is None else [*pictures, layout]
    text = escape(repr(selection))
    return f'<img src="{_data_address(_beside(pictures))}" alt="{text}"><br><code>{text}</code>'


def _beside(pictures: list[Image]) -> Image:
    if len(pictures) == 1:
        return pictures[0]
    gap = np.full((pictures[0].shape[0], _GAP, 3), 255, np.uint8)
    return np.hstack([pictures[0], gap, *pictures[1:]])


def _data_address(image: Image) -> str:
    _, encoded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return "data:image/jpeg;base64," + b64encode(encoded.tobytes()).decode("ascii")
