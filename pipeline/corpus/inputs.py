"""From what the user typed to single videos, each with a name: files, folders, patterns, lists."""

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from foveate.pipeline.corpus.names import PATTERN, Found, Input, input_names
from foveate.pipeline.errors import SourceError
from foveate.pipeline.small_files import small_text
from foveate.pipeline.sources.address import exists, is_network, local_files, shown
from foveate.pipeline.sources.schemes import SCHEMES, local, scheme_of

_SUFFIXES: Final = """
    3g2 3gp amv asf avi dv f4v flv gif ivf m1v m2p m2ts m2v m4v mj2 mjpeg mjpg mkv mov mp4 mpeg mpg mts mxf nut ogg ogv
    rm rmvb ts vob webm wmv y4m 264 265 h264 h265 hevc
"""
VIDEOS: Final = frozenset("." + suffix for suffix in _SUFFIXES.split())
"""Suffixes of the files that are taken from a folder."""

_LIST: Final = "@"
_LONGEST_LIST: Final = 64 * 2**20  # bytes
_ANY_DEPTH: Final = re.compile(r"(^|/)\*\*(?:/|$)")
_ENDLESS: Final = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISCHR, stat.S_ISBLK)


def expand(sources: Iterable[str], buckets: bool = False) -> list[Input]:
    """The single videos that ``sources`` stand for, each once, in natural order of their names.

    A source is a file, an address, numbered pictures (``f_%04d.png``), a folder, of which all files with a suffix of
    videos are taken, a pattern (``clips/*.mp4``, ``clips/**/*.mp4``), or ``@FILE``, a file with one source a line. What
    exists is taken literally. With ``buckets``, a path in a bucket (``s3://...``) stands for all videos below it.

    Raises SourceError for a folder or pattern without a file, and what cannot be listed.
    """
    typed = [line for source in sources for line in _typed(source)]
    objects = _objects(typed) if buckets else {}
    return input_names([objects.get(source) or _one(source) for source in typed])


def _typed(source: str) -> Sequence[str]:
    return _lines(Path(source[1:])) if source.startswith(_LIST) and not exists(source) else (source,)


def _objects(sources: Sequence[str]) -> dict[str, Found]:
    """Of those that lie in buckets, what they stand for."""
    addresses = dict.fromkeys(each for each in sources if is_network(each) and scheme_of(each) not in SCHEMES)
    if not addresses:
        return {}
    from foveate.pipeline.corpus.objects import objects_at

    return objects_at(addresses, VIDEOS)


def _one(source: str) -> Found:
    if not source:
        raise SourceError("the source's address is empty; give a file or a numbered pattern")
    path = local(source)
    if is_network(path):
        return Found(None, (path,))
    if os.path.isdir(path):  # noqa: PTH112 - lists may be long
        return Found(path, tuple(_videos_in(path)))
    if PATTERN.search(path) and not exists(path) and not local_files(path):
        return Found(_before_pattern(path), tuple(_matching(path)))
    return Found(os.path.dirname(path), (path,))  # noqa: PTH120 - keeps what was typed


def _lines(path: Path) -> Sequence[str]:
    """The sources in a list: one a line; empty lines and those that begin with # are passed over."""
    try:
        lines = [line.strip() for line in small_text(path, _LONGEST_LIST).splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not text"
        raise SourceError(f"the list {shown(str(path))} cannot be read: {reason}") from None
    sources = [line for line in lines if line and not line.startswith("#")]
    if not sources:
        raise SourceError(f"the list {shown(str(path))} names no source; write one a line")
    return sources


def _videos_in(folder: str) -> list[str]:
    """The videos in a folder and those below it; hidden files and folders are left out, links to folders too."""
    found = []
    for place, folders, names in os.walk(folder, onerror=_cannot_list):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [os.path.join(place, name) for name in names if _is_video(place, name)]  # noqa: PTH118
    if not found:
        raise SourceError(f"{shown(folder)}: a folder without a video; name files, or a pattern such as '{folder}/*'")
    return found


def _is_video(place: str, name: str) -> bool:
    if name.startswith(".") or Path(name).suffix.lower() not in VIDEOS:
        return False
    try:
        mode = Path(place, name).stat().st_mode
    except OSError:
        return True  # opening it will say what is wrong
    return not any(kind(mode) for kind in _ENDLESS)


def _cannot_list(error: OSError) -> None:
    raise SourceError(f"{shown(str(error.filename))}: the folder cannot be read: {(error.strerror or '').lower()}")


def _matching(pattern: str) -> list[str]:
    """The files that a pattern matches, and the videos in the folders that it matches."""
    found: list[str] = []
    for path in dict.fromkeys(_matched(pattern)):
        if not Path(path).is_dir():
            found.append(path)
        elif not _ANY_DEPTH.search(pattern):
            found += _videos_in(path)
    if not found:
        raise SourceError(f"{shown(pattern)}: no file matches this pattern; check folder and pattern")
    return found


def _matched(pattern: str) -> Iterator[str]:
    """What a pattern matches. Folders that ``**`` stands for are those that a walk finds: no links, no hidden ones."""
    found = _ANY_DEPTH.search(pattern)
    if found is None:
        yield from glob.glob(pattern)  # noqa: PTH207 - keeps what was typed
        return
    before, after = pattern[: found.start()] or found[1], pattern[found.end() :] or "*"
    for start in filter(os.path.isdir, glob.glob(before) if before else [os.curdir]):  # noqa: PTH207
        for place, folders, _ in os.walk(start, onerror=_cannot_list):
            folders[:] = [name for name in folders if not name.startswith(".")]
            below = place if before else place[len("./") :]
            yield from _matched(os.path.join(glob.escape(below), after))  # noqa: PTH118


def _before_pattern(path: str) -> str:
    """The folder in which a pattern begins."""
    parts = Path(path).parts
    first = next(place for place, part in enumerate(parts) if PATTERN.search(part))
    return str(Path(*parts[:first]))
