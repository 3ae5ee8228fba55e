"""Making small sources with ffmpeg, and reading them whole."""

import subprocess
from pathlib import Path

from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source


def ffmpeg(*arguments: object) -> None:
    """Run the ffmpeg program, which must succeed."""
    command = ["ffmpeg", "-nostdin", "-y", "-v", "error", *map(str, arguments)]
    subprocess.run(command, check=True, timeout=60)


def read(path: Path | str, settings: SourceSettings | None = None) -> tuple[SourceInfo, list[Frame]]:
    """Everything of a source that must not be damaged."""
    source = open_source(str(path), settings or SourceSettings())
    frames = list(source)
    source.close()
    assert source.damage == Damage()
    return source.info, frames
