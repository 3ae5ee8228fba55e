"""Which pictures of a live source are looked at: so many a second, or every Nth of those that came."""

from __future__ import annotations

import math

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.sampling import TOLERANCE


class Looks:
    """Says of one picture after the other whether it is looked at.

    With ``fps`` that is the first picture at or after 0, 1/fps, 2/fps seconds: waiting for the one after it, to know
    how long it is shown as for files, would make it late.
    """

    def __init__(self, source: SourceSettings) -> None:
        """Raises SettingsError for a part of a stream that has neither beginning nor end."""
        if source.start is not None or source.end is not None:
            raise SettingsError(
                "source.start and source.end are for files; a live source is read from now on; source.frames ends it"
            )
        self._fps, self._every = source.fps, source.every
        self._due = 0  # number of the next moment, or group of pictures, of which none was looked at

    def take(self, number: int, seconds: float) -> bool:
        """Whether to look at picture ``number``, from 0, of time ``seconds``. Both increase from call to call."""
        at = number // (self._every or 1) if self._fps is None else math.floor((seconds + TOLERANCE) * self._fps)
        if at < self._due:
            return False
        self._due = at + 1
        return True
