"""Structs that kernels and the host share, as NumPy dtypes: read from the CUDA source, which alone declares them."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.memory import DeviceArray
from foveate.pipeline.spec.headers import headers

Layouts = Mapping[str, np.dtype[Any]]

ROOM = Path(__file__).resolve().parent.parent
"""Include folder, besides the source's own."""

_POINTER = np.dtype(np.uint64)
_KINDS: dict[str, np.dtype[Any]] = {
    "u8": np.dtype(np.uint8),
    "u16": np.dtype(np.uint16),
    "short": np.dtype(np.int16),
    "u32": np.dtype(np.uint32),
    "int": np.dtype(np.int32),
    "u64": np.dtype(np.uint64),
    "long long": np.dtype(np.int64),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
_COMMENT = re.compile(r"//.*")
_INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)
_CONSTANT = re.compile(r"^const(?:expr)? int (\w+) = (\d+);", re.MULTILINE)
_STRUCT = re.compile(r"^struct (\w+) \{(.*?)\};", re.MULTILINE | re.DOTALL)
_DECLARATION = re.compile(r"(?:const )?(long long|\w+)((?:\*| const\b)*) (.+)", re.DOTALL)
_DECLARATOR = re.compile(r"(\w+)((?:\[\w+\])*)")


def layouts(source: Path) -> Layouts:
    """The structs of a ``.cu`` or ``.cuh`` file and of what it includes, by name, laid out as in C.

    Left out are those with members of other types than numbers, pointers, arrays and structs of these.
    """
    text = "\n".join(_texts(source, {}, headers("cuda")))
    extents = {name: int(value) for name, value in _CONSTANT.findall(text)}
    kinds = dict(_KINDS)
    found: dict[str, np.dtype[Any]] = {}
    for name, body in _STRUCT.findall(text):
        fields = list(_fields(body, kinds, extents))
        if None not in fields:
            found[name] = kinds[name] = np.dtype(fields, align=True)
    return found


def constants(source: Path) -> Mapping[str, int]:
    """The constants ``const int NAME = NUMBER;`` of a ``.cu`` file and of what it includes."""
    text = "\n".join(_texts(source, {}, headers("cuda")))
    return {name: int(value) for name, value in _CONSTANT.findall(text)}


def parameters(kind: np.dtype[Any], /, **values: Any) -> NDArray[np.void]:
    """A struct with a value for each of its fields: an array shape (). DeviceArrays stand for their pointers, None for
    a null pointer; a struct is a struct or a tuple. Raises TypeError where a field is left out, or is not there.
    """
    names = kind.names or ()
    if wrong := set(names) ^ set(values):
        listed = ", ".join(sorted(wrong))
        raise TypeError(f"the struct's fields are {', '.join(names)}; left out or not there: {listed}")
    packed = np.zeros((), kind)
    for name, value in values.items():
        packed[name] = _plain(value)
    return packed


def _texts(source: Path, read: dict[Path, None], made: Mapping[str, str]) -> Iterator[str]:
    """The file's text behind those of what it includes, each once and without comments; ``made``: generated headers."""
    read[source] = None
    text = _COMMENT.sub("", source.read_text())
    for name in _INCLUDE.findall(text):
        if name in made:
            yield made[name]
            continue
        path = next(path for folder in (source.parent, ROOM) if (path := folder / name).exists())
        if path not in read:
            yield from _texts(path, read, made)
    yield text


def _fields(body: str, kinds: Layouts, extents: Mapping[str, int]) -> Iterator[tuple[Any, ...] | None]:
    """Names, kinds and shapes of the members; None for one of another kind."""
    for declaration in filter(None, (part.strip() for part in body.split(";"))):
        match = _DECLARATION.fullmatch(declaration)
        kind = None if match is None else _POINTER if "*" in match[2] else kinds.get(match[1])
        for declarator in (match[3] if match else "").split(","):
            member = _DECLARATOR.fullmatch(declarator.strip())
            sizes = re.findall(r"\w+", member[2]) if member else []
            if kind is None or member is None or not all(size.isdigit() or size in extents for size in sizes):
                yield None
            else:
                yield member[1], kind, tuple(extents.get(size) or int(size) for size in sizes)


def _plain(value: Any) -> Any:
    """``value`` as NumPy can assign it to a field."""
    if isinstance(value, list | tuple):
        return type(value)(_plain(item) for item in value)
    if isinstance(value, DeviceArray):
        return value.pointer
    return 0 if value is None else value
