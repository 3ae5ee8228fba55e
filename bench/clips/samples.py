"""The clips of a run without files: the samples, two of them scaled to 1080p, and a still scene."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Final

import av

from foveate.bench.case import Clip, file_clips
from foveate.bench.clips.encoding import DEFAULT_QUALITY, encode
from foveate.bench.records.writing import ROOT, sha256
from foveate.pipeline.errors import SourceError

SAMPLES: Final = ("bunny", "pedestrians", "tree")
_WIDTH, _HEIGHT = 1920, 1080
_STILL_FRAMES, _STILL_RATE = 300, Fraction(25)
_QUALITY = "libx264 at its default quality (crf 23, preset medium)"

Say = Callable[[str], None]


def sample_folder() -> Path:
    """Where the sample clips are: in the checkout that this runs from, or else in the one that is the current folder.

    Raises SourceError where there are none.
    """
    for folder in (ROOT / "sample_videos", Path("sample_videos").absolute()):
        if all((folder / f"{name}.mp4").is_file() for name in SAMPLES):
            return folder
    raise SourceError("there are no sample clips here; run this in a clone of the repository, or name video files")


def sample_clips(*names: str) -> list[Clip]:
    """Sample clips by name. Raises SourceError as ``sample_folder``."""
    return [Clip(name, sample_folder() / f"{name}.mp4") for name in names]


def clips_of(files: Sequence[str], *samples: str) -> list[Clip]:
    """The user's files; if none are named, sample clips."""
    return file_clips(files) if files else sample_clips(*samples)


def cache_folder() -> Path:
    """Where clips that were made are kept for the next time."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "foveate" / "bench"


def default_clips(folder: Path, say: Say) -> list[Clip]:
    """The samples and the clips made from them, which are looked up or made in ``folder``.

    Raises SourceError without samples, SinkError where a clip cannot be made.
    """
    clips = sample_clips(*SAMPLES)
    bunny, pedestrians, _ = (clip.path for clip in clips)
    return [*clips, scaled(bunny, folder, say), scaled(pedestrians, folder, say), still(pedestrians, folder, say)]


def scaled(source: Path, folder: Path, say: Say) -> Clip:
    """All frames of ``source`` at 1920x1080, whatever its shape."""
    how = f"{source.name} scaled to {_WIDTH}x{_HEIGHT} by libswscale, bicubic; {_QUALITY}"
    return _made(f"{source.stem}-1080p", how, source, folder, say, _scaled_frames)


def still(source: Path, folder: Path, say: Say) -> Clip:
    """The first frame of ``source`` at 1920x1080, many times."""
    how = f"first frame of {source.name} scaled to {_WIDTH}x{_HEIGHT}, {_STILL_FRAMES} times; {_QUALITY}"
    return _made("still-1080p", how, source, folder, say, _still_frames)


Frames = Callable[[Path], Iterator[tuple[av.VideoFrame, Fraction]]]


def _made(name: str, how: str, source: Path, folder: Path, say: Say, frames: Frames) -> Clip:
    """The clip from the cache; where it is not there, made now."""
    recipe = f"{how} {sha256(source)} {av.ffmpeg_version_info}"
    path = folder / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}.mp4"
    if not path.exists():
        say(f"making {name}: {how}")
        encode(path, (frame for frame, _ in frames(source)), next(frames(source))[1], DEFAULT_QUALITY)
    return Clip(name, path, how)


def _scaled_frames(source: Path) -> Iterator[tuple[av.VideoFrame, Fraction]]:
    with av.open(f"file:{source}") as container:
        stream = container.streams.video[0]
        rate = stream.average_rate or Fraction(25)
        for frame in container.decode(stream):
            yield frame.reformat(_WIDTH, _HEIGHT, "yuv420p"), rate


def _still_frames(source: Path) -> Iterator[tuple[av.VideoFrame, Fraction]]:
    frame, _ = next(_scaled_frames(source))
    yield from repeat((frame, _STILL_RATE), _STILL_FRAMES)
