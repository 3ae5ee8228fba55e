"""From addresses in buckets to single videos, with their sizes: by few requests, however many are named."""

import contextlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from foveate.pipeline.corpus.buckets import file_system, reason_of, require_answer
from foveate.pipeline.corpus.names import PATTERN, Found
from foveate.pipeline.errors import SourceError
from foveate.pipeline.sources.address import parts_of, shown

_FEW: Final = 16  # videos of one folder that are asked about one by one; of more, the folder is listed
_MOST: Final = 1024  # videos in all that are asked about one by one; of more, the sizes stay unknown


def objects_at(addresses: Collection[str], suffixes: frozenset[str]) -> dict[str, Found]:
    """What each address stands for: an object, the objects that a pattern matches, or all below a path.

    Below a path, those count whose names end as ``suffixes`` say. Whatever ends so itself is taken for an object; if it
    is not there, opening it will say so.

    Raises SourceError where a server does not answer, and for a path or pattern without a video.
    """
    for address in {parts_of(address)[:2]: address for address in addresses}.values():
        require_answer(address)  # one of each bucket
    single = [address for address in addresses if _suffix(address) in suffixes and not PATTERN.search(address)]
    folders: dict[str, list[str]] = defaultdict(list)
    for address in single:
        folders[address.rpartition("/")[0]].append(address)
    found: dict[str, Found] = {}
    for folder, videos in folders.items():
        found |= _named(folder, videos, asks=len(single) <= _MOST)
    return found | {address: _below(address, suffixes) for address in addresses if address not in found}


def _named(folder: str, videos: Sequence[str], asks: bool) -> dict[str, Found]:
    """What addresses of one folder stand for that seem to be objects; those that are paths are left out."""
    files, path = file_system(folder)
    names = {address: address.rpartition("/")[2] for address in videos}
    held: dict[str, dict[str, Any]] = {}
    if len(videos) > _FEW:
        with contextlib.suppress(OSError):  # who may read objects may not be allowed to list them
            held = {each["name"].rpartition("/")[2]: each for each in files.ls(path, detail=True)}
    elif asks:
        for name in names.values():
            with contextlib.suppress(OSError):
                held[name] = files.info(f"{path}/{name}")
    root = str(files.unstrip_protocol(path))
    return {
        address: Found(root, (f"{root}/{name}",), (_size(held.get(name, {})),))
        for address, name in names.items()
        if held.get(name, {}).get("type") != "directory"
    }


def _below(address: str, suffixes: frozenset[str]) -> Found:
    files, path = file_system(address)
    begin = PATTERN.search(path)
    try:
        held: dict[str, Any] = files.glob(path, detail=True) if begin else files.find(path, detail=True)
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{shown(address)}: {reason_of(error)}") from error
    wanted = {
        str(files.unstrip_protocol(name)): _size(about)
        for name, about in held.items()
        if about.get("type") != "directory" and (begin or name == path or _suffix(name) in suffixes)
    }
    if not wanted:
        raise SourceError(f"{shown(address)}: there is no video there; check bucket and path")
    root = path[: begin.start()].rpartition("/")[0] if begin else path.rpartition("/")[0] if path in held else path
    return Found(str(files.unstrip_protocol(root)), tuple(wanted), tuple(wanted.values()))


def _size(about: dict[str, Any]) -> int:
    return int(about.get("size") or 0)


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
