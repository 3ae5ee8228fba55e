"""Example pictures as queries: a picture shows what to look for."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.small_files import awaited
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.opacity import opaque


class Example(NamedTuple):
    """A picture, cropped to its opaque pixels."""

    rgb: NDArray[np.uint8]  # R'G'B' [H, W, 3]; undefined where transparent
    shows: NDArray[np.bool_]  # [H, W]: True where opaque; at least one pixel is

    def filled(self) -> NDArray[np.uint8]:
        """``rgb`` with the mean of the opaque pixels in place of the others."""
        mean = self.rgb[self.shows].mean(axis=0, dtype=np.float64)
        return np.where(self.shows[..., None], self.rgb, np.rint(mean).astype(np.uint8))


def example(path: str) -> Example:
    """Read the first picture of a file. Raises SourceError, also if it is wholly transparent."""
    try:
        with awaited(Path(path)):
            rgb = _first(path)
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}") from None
    shows = opaque(Path(path)) if Path(path).is_file() else None  # numbered pictures and pipes have no alpha here
    if shows is None:
        return Example(rgb, np.ones(rgb.shape[:2], np.bool_))
    if not shows.any():
        raise SourceError(f"{path}: the picture is wholly transparent, so there is nothing to look for")
    rows, columns = (np.flatnonzero(shows.any(axis=axis)) for axis in (1, 0))
    cut = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return Example(rgb[cut], shows[cut])


def _first(path: str) -> NDArray[np.uint8]:
    source = open_source(path, SourceSettings(frames=1))
    with closing(source):
        for frame in source:
            return picture_rgb(frame)
    raise SourceError(f"{source.info.name} holds no picture that can be read")
