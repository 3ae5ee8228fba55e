"""A picture of the channels of one frame: a sheet of labelled maps, each over the grid of cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import CELL
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.channel_colours import coloured
from foveate.pipeline.sinks.destination import claim, write_whole

Image = NDArray[np.uint8]

SUFFIXES: Final = (".png", ".jpg", ".jpeg", ".webp")
_ACROSS: Final = 7  # maps in a row: with the picture and the score, the 40 channels of the default layout fill six
_WIDTH: Final = 264  # pixels of a map
_GAP: Final = 8
_LABEL: Final = 40  # pixels above a map: two lines
_GROUND: Final = (18, 20, 26)
_BRIGHT: Final = (236, 238, 242)
_DULL: Final = (160, 166, 178)
_JPEG_QUALITY: Final = 80


class ChannelSheetSink:
    """Draws the channels of ``layout``, as far as the Selection of one frame has them among its maps.

    That is frame ``number``, from 0, of those that are processed.
    """

    needs_patches = needs_heat = needs_query = False

    def __init__(self, path: str, layout: Sequence[str], number: int) -> None:
        """Raises SettingsError for a suffix that is no picture's."""
        self._path = Path(path)
        if self._path.suffix.lower() not in SUFFIXES:
            raise SettingsError(f"the picture of the channels {path!r} must end in one of {', '.join(SUFFIXES)}")
        self._layout = tuple(layout)
        self._left = number  # frames that come before it

    def open(self, header: Header) -> None:
        """Make sure that the picture can be written. Raises SinkError."""
        claim(self._path, header)

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Draw, if this is the frame. Raises SinkError."""
        self._left -= 1
        if self._left == -1:
            sheet = draw_sheet(picture_rgb(frame), selection.maps, self._layout, f"frame {selection.index}")
            kind = self._path.suffix.lower()
            quality = [] if kind in (".png", ".webp") else [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY]
            _, data = cv2.imencode(kind, sheet[..., ::-1], quality)
            write_whole(self._path, lambda part: _save(part, data.tobytes()))

    def close(self) -> None:
        """Does nothing: the picture is written by ``write``."""


def draw_sheet(picture: Image, maps: Mapping[str, NDArray[np.float32]], layout: Sequence[str], caption: str) -> Image:
    """uint8[h, w, 3], R'G'B': the picture, then each channel with its place in the layout and its range in this frame.

    A map of the score follows where there is one. ``maps`` are float32[grid]; the padding is not shown.
    """
    high, wide = picture.shape[:2]
    shown = -(-high // CELL), -(-wide // CELL)
    size = _WIDTH, int(np.clip(round(_WIDTH * high / wide), 24, 3 * _WIDTH))
    small = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
    tiles = [_tile(small, caption, f"{wide}x{high} pixels")]
    for place, name in enumerate(layout):
        if name in maps:
            tiles.append(_map_tile(maps[name][: shown[0], : shown[1]], name, f"{place}  {name}", size))
    if "score" in maps:
        tiles.append(_map_tile(maps["score"][: shown[0], : shown[1]], "score", "score", size))
    return _arranged(tiles)


def _map_tile(values: NDArray[np.float32], name: str, title: str, size: tuple[int, int]) -> Image:
    """Enlarged without interpolation, so that cells show as squares."""
    image = cv2.resize(coloured(name, values), size, interpolation=cv2.INTER_NEAREST)
    low, high = float(values.min()), float(values.max())
    group = BY_NAME[name].group if name in BY_NAME else "score"
    span = f"{low:.3g} everywhere" if low == high else f"{round(low, 3):.2g} to {high:.2g}"
    return _tile(np.asarray(image, np.uint8), title, f"{group}: {span}")


def _tile(image: Image, title: str, about: str) -> Image:
    """The image with its two lines above."""
    tile = np.full((image.shape[0] + _LABEL, _WIDTH, 3), _GROUND, np.uint8)
    tile[_LABEL:] = image
    for text, baseline, size, colour in ((title, 16, 0.5, _BRIGHT), (about, 33, 0.4, _DULL)):
        cv2.putText(tile, text, (1, baseline), cv2.FONT_HERSHEY_SIMPLEX, size, colour, 1, cv2.LINE_AA)
    return tile


def _arranged(tiles: Sequence[Image]) -> Image:
    high, wide = tiles[0].shape[0] + _GAP, _WIDTH + _GAP
    across = min(_ACROSS, len(tiles))
    rows = -(-len(tiles) // across)
    sheet = np.full((rows * high + _GAP, across * wide + _GAP, 3), _GROUND, np.uint8)
    for place, tile in enumerate(tiles):
        row, column = divmod(place, across)
        top, left = row * high + _GAP, column * wide + _GAP
        sheet[top : top + tile.shape[0], left : left + _WIDTH] = tile
    return sheet


def _save(path: Path, data: bytes) -> None:
    path.write_bytes(data)
