"""A picture that shows what to look for."""

from __future__ import annotations

from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.colour import picture_rgb
from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source


def example(path: str) -> NDArray[np.uint8]:
    """The first picture of a file, R'G'B' uint8[H, W, 3]. Raises SourceError."""
    source = open_source(path, SourceSettings(frames=1))
    with closing(source):
        for frame in source:
            return picture_rgb(frame)
    raise SourceError(f"{source.info.name} holds no picture that can be read")
