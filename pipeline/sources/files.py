"""The feed for a file: one of its streams, or for HEIF pictures all tiles of one."""

from pathlib import Path

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.boxes import in_file
from foveate.pipeline.sources.container import ContainerFeed
from foveate.pipeline.sources.decoding import FileFeed
from foveate.pipeline.sources.heif import Still, still_of
from foveate.pipeline.sources.tiles import TiledFeed

DERIVED = {"iden", "iovl", "tmap"}  # kinds of items that are made from others, beside grids


def open_file(path: Path, settings: SourceSettings) -> FileFeed:
    """Open a file. Raises SourceError, in one line."""
    still = _still(path)
    if still is not None and still.kind == "grid":
        return TiledFeed(path, still, settings)
    if still is not None and still.kind in DERIVED:
        raise SourceError(
            f"{shown(str(path))}: its picture is composed of others in a way that is not supported ({still.kind}); "
            "convert it to JPEG or PNG"
        )
    return ContainerFeed(path, settings)


def _still(path: Path) -> Still | None:
    try:
        return in_file(path, still_of)
    except (OSError, ValueError):  # opening it again will say what is wrong
        return None
