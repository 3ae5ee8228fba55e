"""The overlay video as a sink: tokens, scores, what a model sees, and figures."""

from pathlib import Path

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, refuse_source
from foveate.pipeline.sinks.overlay.picture import OverlayPicture
from foveate.pipeline.sinks.overlay.shared import SharedPicture
from foveate.pipeline.sinks.overlay.video import VideoFile


class OverlaySink:
    """Writes one picture per frame to an MP4, MOV or Matroska file (H.264, 4:2:0, true times, no sound)."""

    needs_patches = True
    needs_heat = True
    needs_query = False

    def __init__(self, path: str, shared: SharedPicture | None = None) -> None:
        """``shared``: where the report of the same stream draws as well."""
        self._path = Path(path)
        self._shared = shared or SharedPicture()
        self._picture: OverlayPicture | None = None
        self._video: VideoFile | None = None
        self._origin: float | None = None  # seconds, of the first picture: some players wait until then

    def open(self, header: Header) -> None:
        """Create the file; its size follows from the header's. Raises SinkError."""
        refuse_source(self._path, header)
        self._picture = self._shared.open(header)
        self._origin = None
        layout = self._picture.layout
        try:
            self._video = VideoFile(self._path, layout.width, layout.height, header.fps)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Draw and encode one picture. Raises SinkError."""
        assert self._picture is not None, "the sink is not open"
        assert self._video is not None, "the sink is not open"
        picture = self._picture.draw(frame, selection)
        self._origin = selection.time if self._origin is None else self._origin
        try:
            self._video.write(picture, selection.time - self._origin)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    @property
    def written(self) -> int:
        """Bytes of the file so far."""
        return self._path.stat().st_size

    def takes(self, selection: Selection) -> bool:
        """Always: pictures of another size are fitted in."""
        return True

    def close(self) -> None:
        """Finish the file. Raises SinkError."""
        video, self._video = self._video, None
        if video is None:
            return
        try:
            video.close()
        except OSError as error:
            raise cannot_write(self._path, error) from error
