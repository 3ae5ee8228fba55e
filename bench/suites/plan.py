"""How much a suite measures."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

from foveate.bench.case import Clip, Memory
from foveate.bench.records.writing import sha256
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import Settings, SourceSettings
from foveate.pipeline.sources import open_source

MEMORIES: Final[tuple[Memory, ...]] = ("frame", "stream")


@dataclass(frozen=True, slots=True)
class Plan:
    """The same for all suites: what is read, under which settings, and how often times are taken."""

    clips: tuple[Clip, ...]
    settings: Settings  # what is varied from, or measured as it is
    memories: tuple[Memory, ...]
    frames: int  # of each clip, at most
    repeats: int  # turns of what is timed
    quick: bool = False  # fewer points on curves

    def record(self) -> dict[str, Any]:
        """The plan as it stands in the record, so that a run that goes on can be told from another one."""
        return {
            "clips": {clip.name: sha256(clip.path) for clip in self.clips if clip.path.is_file()},
            "memories": list(self.memories),
            "frames": self.frames,
            "repeats": self.repeats,
            "settings": self.settings.model_dump(mode="json"),
        }


def read_frames(path: Path, count: int) -> list[Frame]:
    """The first frames of a file, decoded, so that what is timed decodes nothing. Raises SourceError."""
    source = open_source(str(path), SourceSettings(frames=count))
    try:
        return list(islice(source, count))
    finally:
        source.close()
