"""Which pictures of a live source are processed: so many a second, or every Nth."""

import math

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.sampling import TOLERANCE


class LiveSampling:
    """Decides on one picture after the other.

    With ``fps`` it takes the first picture at or after 0, 1/fps, 2/fps seconds. Files are sampled by how long a picture
    is shown; here that would delay each picture until the next one comes.
    """

    def __init__(self, source: SourceSettings) -> None:
        """Raises SettingsError for ``start`` and ``end``: a live stream has neither."""
        if source.start is not None or source.end is not None:
            raise SettingsError(
                "source.start and source.end are for files; a live source is read from now on; source.frames ends it"
            )
        self._fps, self._every = source.fps, source.every
        self._due = 0  # the next sampling instant, or group of pictures, by number

    def take(self, number: int, time: float) -> bool:
        """Whether to process picture ``number``, from 0, at ``time`` in seconds. Both increase from call to call."""
        at = number // (self._every or 1) if self._fps is None else math.floor((time + TOLERANCE) * self._fps)
        if at < self._due:
            return False
        self._due = at + 1
        return True
