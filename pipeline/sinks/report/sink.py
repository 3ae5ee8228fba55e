"""The report: one HTML file with the clip and its panels, the figures over time, the queries, and the settings."""

import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, write_whole
from foveate.pipeline.sinks.overlay.shared import SharedPicture
from foveate.pipeline.sinks.overlay.video import VideoFile
from foveate.pipeline.sinks.report.figures import Figures
from foveate.pipeline.sinks.report.page import CLIP, page

# Of the clip in the page, which is to stay small enough to open: a minute at 30 a second, and less where that is large.
MOST_PICTURES: Final = 1800
_MOST_BYTES: Final = 24 * 2**20
_CHUNK: Final = 3 * 2**16  # bytes that are encoded at once; whole groups of three, so that the texts join


class ReportSink:
    """Writes a page that needs no other file. It appears when the run ends, also when it is interrupted."""

    needs_patches = True
    needs_heat = True
    needs_query = False

    def __init__(self, path: str, shared: SharedPicture | None = None) -> None:
        """``shared``: where the overlay of the same stream draws as well."""
        self._path = Path(path)
        self._shared = shared
        self._header: Header | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def open(self, header: Header) -> None:
        """Make sure that the page can be written. Raises SinkError."""
        claim(self._path, header)
        self._header = header
        self._folder = tempfile.TemporaryDirectory(prefix="foveate-report-")
        self._clip = Path(self._folder.name) / "clip.mp4"
        self._picture = (self._shared or SharedPicture()).open(header)
        self._figures = Figures()
        self._shown = 0  # pictures of the clip
        layout = self._picture.layout
        try:
            self._video: VideoFile | None = VideoFile(self._clip, layout.width, layout.height, header.fps, compact=True)
        except OSError as error:
            self._folder.cleanup()
            raise cannot_write(self._path, error) from error

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Draw one picture, and note its figures. Raises SinkError."""
        try:
            if self._video is not None:
                self._video.write(self._picture.draw(frame, selection), selection.time - self._figures.start(selection))
                self._shown += 1
            else:
                self._picture.follow(frame, selection)
            self._figures.add(selection, self._picture.psnr)
            if len(self._figures) == MOST_PICTURES or self._clip.stat().st_size >= _MOST_BYTES:
                self._finish_clip()
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def close(self) -> None:
        """Write the page. Raises SinkError."""
        folder, self._folder = self._folder, None
        if folder is None:
            return
        try:
            self._finish_clip()
            write_whole(self._path, self._save)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        finally:
            folder.cleanup()

    def _finish_clip(self) -> None:
        video, self._video = self._video, None
        if video is not None:
            video.close()

    def _save(self, part: Path) -> None:
        assert self._header is not None, "the sink is not open"
        before, after = page(self._header, self._figures, self._shown).split(CLIP)
        with part.open("w", encoding="utf-8", errors="replace") as file:
            file.write(before)
            if len(self._figures):
                with self._clip.open("rb") as clip:
                    file.writelines(_in_base64(clip))
            file.write(after)


def _in_base64(file: IO[bytes]) -> Iterator[str]:
    while part := file.read(_CHUNK):
        yield b64encode(part).decode("ascii")
