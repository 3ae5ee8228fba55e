"""The files that a command reads: none of its outputs may overwrite one of them."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from foveate.pipeline.errors import SinkError
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources.address import exists, local_files
from foveate.pipeline.sources.schemes import local


def refuse_inputs(
    outputs: Sequence[str], addresses: Sequence[str], settings: Settings, model: str | None = None
) -> None:
    """Raise SinkError where an output is one of the files that are read.

    They are those of ``addresses``, those that ``settings`` name, and those in the folder ``model``.

    Sinks know the source by the name in their header, which holds no line breaks and the like; here it is as typed.
    """
    there = [output for output in outputs if exists(output)]
    if not there:
        return
    read = {_identity(path): role for role, path in (*_weights(model), *_inputs(addresses, settings)) if exists(path)}
    for output in there:
        role = read.get(_identity(Path(output)))
        if role is not None:
            raise SinkError(f"cannot write {output}: it is {role}; name another file")


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _inputs(addresses: Sequence[str], settings: Settings) -> Iterator[tuple[str, Path]]:
    """The input files that an output's name could overwrite, each with what it is used for."""
    named = {
        "query_image": settings.query_image,
        "score.weights": (settings.score.weights,),
        "clip.weights": (settings.clip.weights,),
        "clip.pca": (settings.clip.pca,),
    }
    for setting, names in named.items():
        for name in filter(None, names):
            yield from ((f"read as {setting}", path) for path in local_files(name))

    whose = "the source itself" if len(addresses) == 1 else "one of the sources"
    for address in addresses:
        yield from ((whose, path) for path in local_files(local(address)))


def _weights(model: str | None) -> Iterator[tuple[str, Path]]:
    """The files of the model in a folder, if there is one."""
    with contextlib.suppress(OSError):  # errors are reported where the folder is read
        for path in () if model is None else Path(model).iterdir():
            yield f"a file of the model in {model}", path
