"""Opening files with libavformat, in one piece or in part."""

import os
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import av
from av.container import InputContainer
from av.error import ArgumentError, FFmpegError, InvalidDataError

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.boxes import boxes, in_file
from foveate.pipeline.sources.decoding import reason_of
from foveate.pipeline.sources.edits import PatchedFile

NOT_VIDEO = {"tty", "bin", "xbin", "adf", "idf", "concat", "ffmetadata"}  # text drawn as pictures; lists

_CHECKED = 64  # boxes of a file that cannot be opened


class Part(NamedTuple):
    """A part of a file that is read as if it were a file."""

    start: int = 0  # bytes
    stop: int = 0  # 0: to the end of the file
    stream: int | None = None  # the stream's number in the container, where none has to be chosen


WHOLE = Part()


def open_container(
    path: Path, settings: SourceSettings, name: str, part: Part = WHOLE, patched: PatchedFile | None = None
) -> InputContainer:
    """Open a local file, a part of it, or ``patched`` in its place, by its literal name.

    Neither the name nor the content can reach the network.

    Raises SourceError, in one line that holds nothing of the file's content.
    """
    _check_readable(path, name)
    options = {"framerate": f"{settings.rate:.6f}", "pattern_type": "none", "protocol_whitelist": "file,pipe,fd"}
    url = f"file:{path.absolute()}"
    if part != WHOLE:
        options["protocol_whitelist"] += ",subfile"
        url = f"subfile,,start,{part.start},end,{part.stop},,:{url}"
    try:
        container = av.open(patched or url, "r", options=options, metadata_errors="replace")
    except InvalidDataError:
        raise SourceError(f"{name}: {_unopened(path)}") from None
    except ArgumentError:  # FFmpeg goes by the suffix, such as .yuv
        raise SourceError(f"{name}: cannot be opened; pixels without a header need one: make it .y4m") from None
    except (FFmpegError, UnicodeError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, FFmpegError) else "its name cannot be encoded; rename it"
        raise SourceError(f"{name}: cannot be opened: {reason}") from None
    if container.format.name in NOT_VIDEO:
        container.close()
        raise SourceError(f"{name}: not a video but text or a list; give a video file")
    if container.format.name == "webp_pipe" and path.is_file() and _is_animated_webp(path):
        container.close()
        raise SourceError(f"{name}: an animated WebP, which FFmpeg does not decode; convert it to GIF or a video")
    return container


def _unopened(path: Path) -> str:
    """Why a file cannot be read, and what to do."""
    first = in_file(path, lambda file, size: list(islice(boxes(file, 0, size), _CHECKED)))
    kinds = [box.kind for box in first or ()]
    if b"moof" in kinds and b"moov" not in kinds:
        return "fragments of an MP4 without their header; put the initialization segment before them"
    if b"mdat" in kinds and b"moov" not in kinds and b"meta" not in kinds:
        return "an MP4 without its index, which is written at the end of a recording; it was cut short, or never ended"
    return "not a video, or its header is missing or cut; check the file"


def _is_animated_webp(path: Path) -> bool:
    """True where the extended header has the flag of an animation (RFC 9649, 2.7)."""
    with path.open("rb") as file:
        head = file.read(21)
    return len(head) == 21 and head[12:16] == b"VP8X" and bool(head[20] & 2)


def _check_readable(path: Path, name: str) -> None:
    try:
        if path.is_dir():
            raise SourceError(f"{name}: is a directory; give a file, or a pattern like {name}/f_%04d.png")
        if path.stat().st_size == 0 and path.is_file():
            raise SourceError(f"{name}: the file is empty; check how it was written")
        if path.is_file():
            os.close(os.open(path, os.O_RDONLY))
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise SourceError(f"{name}: {reason}; check the path and its permissions") from None
    except ValueError:
        raise SourceError(f"{name}: not a file name; check the path") from None
