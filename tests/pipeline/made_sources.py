"""Making small sources with ffmpeg, and reading them whole."""

import subprocess
from pathlib import Path

from foveate.pipeline.frames import Frame
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source


def ffmpeg(*arguments: str) -> None:
    subprocess.run(["ffmpeg", "-nostdin", "-y", "-v", "error", *arguments], check=True)


def read(path: Path | str) -> tuple[SourceInfo, list[Frame]]:
    """Everything of a source that must not be damaged."""
    source = open_source(str(path), SourceSettings())
    frames = list(source)
    source.close()
    assert source.damage.messages == []
    return source.info, frames
