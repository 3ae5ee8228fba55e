"""Sources: files, stills and numbered images in, Frames out.

Decoders are imported when one is opened: much that decodes nothing needs the addresses in this folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Source
from foveate.pipeline.settings import LiveSettings, SourceSettings
from foveate.pipeline.sources.address import exists, is_network, is_pattern, shown
from foveate.pipeline.sources.schemes import local, may_end, may_last, refusal

if TYPE_CHECKING:
    from foveate.pipeline.sources.decoding import FileFeed

__all__ = ["length_of", "open_source"]

_PLAIN = LiveSettings()


def open_source(address: str, settings: SourceSettings, network: LiveSettings = _PLAIN) -> Source:
    """Open a video file, GIF, still, elementary stream or numbered image sequence (``seq/f_%04d.png``).

    A file may lie on a server: ``network`` says how long to wait for it, and which servers to trust. A file that exists
    is taken literally, whatever its name. Raises SourceError, in one line, and SettingsError.
    """
    from foveate.pipeline.sources.video import VideoSource

    address = local(address)
    name = shown(address)
    damage = Damage()
    feed = _feed(address, settings, network, damage, name)
    try:
        return VideoSource(feed, settings, damage, name)
    except BaseException:
        feed.close()
        raise


def length_of(address: str, settings: SourceSettings, network: LiveSettings = _PLAIN) -> float | None:
    """Seconds from the first picture to the end of the last, by the header; None if it does not say.

    Raises as open_source does.
    """
    feed = _feed(address, settings, network, Damage(), shown(address))
    try:
        return feed.length
    finally:
        feed.close()


def _feed(address: str, settings: SourceSettings, network: LiveSettings, damage: Damage, name: str) -> FileFeed:
    if not address:
        raise SourceError("the source's address is empty; give a file or a numbered pattern")
    path = Path(address)
    if not exists(path):
        if address == "-":
            raise SourceError("-: there is no file of that name; use /dev/stdin for standard input")
        if is_network(address):
            if may_end(address):
                from foveate.pipeline.sources.remote.feed import RemoteFeed

                return RemoteFeed(address, settings, network)
            raise (
                SourceError(f"{name} is a live source; give it to foveate live")
                if may_last(address)
                else refusal(address)
            )
        if is_pattern(path):
            from foveate.pipeline.sources.pictures import PictureFeed

            return PictureFeed(path, settings, damage)
    from foveate.pipeline.sources.files import open_file

    return open_file(path, settings)
