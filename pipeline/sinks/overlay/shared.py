"""One picture for all sinks of a stream that show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from foveate.pipeline.selection import Header

if TYPE_CHECKING:
    from foveate.pipeline.sinks.overlay.picture import OverlayPicture


class SharedPicture:
    """The OverlayPicture that several sinks of a stream share."""

    def __init__(self) -> None:
        self._picture: OverlayPicture | None = None

    def open(self, header: Header) -> OverlayPicture:
        """It, made at the first call; opened again, it knows what the model has seen."""
        if self._picture is None:
            from foveate.pipeline.sinks.overlay.picture import OverlayPicture

            self._picture = OverlayPicture(header)
        return self._picture
