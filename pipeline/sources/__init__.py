"""Sources: files, stills and numbered images in, Frames out."""

from __future__ import annotations

from pathlib import Path

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Source
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.address import exists, is_network, is_pattern, shown
from foveate.pipeline.sources.decoding import FileFeed
from foveate.pipeline.sources.files import open_file
from foveate.pipeline.sources.pictures import PictureFeed
from foveate.pipeline.sources.video import VideoSource

__all__ = ["open_source"]


def open_source(address: str, settings: SourceSettings) -> Source:
    """Open a video file, GIF, still, elementary stream or numbered image sequence (``seq/f_%04d.png``).

    A file that exists is taken literally, whatever its name. Raises SourceError, in one line.
    """
    name = shown(address)
    damage = Damage()
    feed = _feed(address, settings, damage, name)
    try:
        return VideoSource(feed, settings, damage, name)
    except BaseException:
        feed.close()
        raise


def _feed(address: str, settings: SourceSettings, damage: Damage, name: str) -> FileFeed:
    if not address:
        raise SourceError("the source's address is empty; give a file or a numbered pattern")
    path = Path(address)
    if not exists(path):
        if address == "-":
            raise SourceError("-: there is no file of that name; for standard input give /dev/stdin")
        if is_network(address):
            raise SourceError(f"{name}: network addresses cannot be read yet; give a file")
        if is_pattern(path):
            return PictureFeed(path, settings, damage)
    return open_file(path, settings)
