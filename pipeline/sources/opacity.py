"""Which parts of a picture file are transparent. The alpha of videos is ignored."""

from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.decoding import FrameDecoder
from foveate.pipeline.sources.files import open_file
from foveate.pipeline.sources.orientation import OrientationReader, turn

_HALF = 128  # of 255: what is more opaque than transparent


def opaque(path: Path) -> NDArray[np.bool_] | None:
    """The opaque pixels of a file's first picture, upright, bool[H, W]; None where it has no alpha.

    Raises SourceError where the file cannot be opened.
    """
    with closing(open_file(path, SourceSettings())) as feed:
        frame = next(FrameDecoder(feed, Damage()).frames(), None)
        if frame is None:
            return None
        own = frame.format
        if not own.has_palette and not any(component.is_alpha for component in own.components):
            return None
        alpha, geometry = np.ascontiguousarray(frame.to_ndarray(format="rgba")[..., 3], np.uint8), feed.geometry
        if geometry.crop is not None and geometry.crop.fits(alpha):
            alpha = geometry.crop.cut(alpha)
        return turn(alpha, OrientationReader(geometry.orientation).read(frame)) >= _HALF
