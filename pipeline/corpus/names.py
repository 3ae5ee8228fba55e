"""Names of videos: paths relative to what all inputs have in common, in natural order."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from foveate.pipeline.errors import SourceError
from foveate.pipeline.sources.address import is_network, parts_of, redact, shown

PATTERN: Final = re.compile(r"[*?[]")
"""What makes an address stand for all that match it."""
_DIGITS: Final = re.compile(r"([0-9]+)")
_HERE: Final = ("", ".", "..")

Place = tuple[str, ...]


class Input(NamedTuple):
    """One video."""

    address: str
    name: str  # its path relative to the inputs' common root
    size: int = 0  # bytes; 0 where that is not known without asking


class Found(NamedTuple):
    """The videos that one source stands for."""

    root: str | None  # the folder that names begin in; None for an address: that of the file
    addresses: tuple[str, ...]
    sizes: tuple[int, ...] = ()  # of each in bytes, where they are known


def input_names(found: Sequence[Found]) -> list[Input]:
    """The videos of all sources, each once, in natural order. Raises SourceError where two would bear one name.

    Files lie below the deepest folder that all sources have in common, and are named from there. Addresses are named
    from what all of one server have in common; where files or another server are among the sources, its name is before.
    """
    places: dict[str, Place] = {}
    roots: dict[str, Place] = {}
    sizes: dict[str, int] = {}
    for root, addresses, known in found:
        sizes.update(zip(addresses, known, strict=False))
        for address in addresses:
            host, *_ = place = places[address] = _place(address)
            begin = place[:-1] if root is None else _place(root)
            roots[host] = _common(roots.get(host, begin), begin)
    named = {}
    for address, place in _once(places):
        named[address] = _name(place, len(roots[place[0]]), len(roots) > 1)
    _refuse_equal(named)
    inputs = (Input(address, name, sizes.get(address, 0)) for address, name in named.items())
    return sorted(inputs, key=lambda each: (natural_order(each.name), each.name))


def _once(places: dict[str, Place]) -> Iterator[tuple[str, Place]]:
    """Each file once, however it is written."""
    seen: set[Place] = set()
    for address, place in places.items():
        if is_network(address) or place not in seen:
            seen.add(place)
            yield address, place


def natural_order(name: str) -> list[list[tuple[int, int, str]]]:
    """A key by which clip2 comes before clip10: part by part of the path, numbers by their value."""
    return [_order_of(part) for part in name.split("/")]


@lru_cache(4096)  # many names begin with the same folders
def _order_of(part: str) -> list[tuple[int, int, str]]:
    return [_piece(text) for text in _DIGITS.split(part)]


def _piece(text: str) -> tuple[int, int, str]:
    if not text[:1].isdecimal():
        return 1, 0, text
    digits = text.lstrip("0")
    return 0, len(digits), digits


def _place(address: str) -> Place:
    """The parts of a path, behind the server's name, which is empty for files."""
    if not is_network(address):
        below = os.path.abspath(address).strip("/")  # noqa: PTH100 - without following links
        return ("", *below.split("/")) if below else ("",)
    parts = parts_of(redact(address))
    path = [part for part in parts.path.split("/") if part not in _HERE]
    return (parts.netloc.rpartition("@")[2], *path)


def _common(one: Place, other: Place) -> Place:
    return tuple(_while_equal(one, other))


def _while_equal(one: Iterable[str], other: Iterable[str]) -> Iterator[str]:
    for part, same in zip(one, other, strict=False):
        if part != same:
            return
        yield part


def _name(place: Place, common: int, hosts: bool) -> str:
    host, path = place[0], place[common:]
    return "/".join([host, *path] if hosts and host else path) or host


def _refuse_equal(named: dict[str, str]) -> None:
    first: dict[str, str] = {}
    for address, name in named.items():
        if name in first:
            raise SourceError(
                f"{shown(first[name])} and {shown(address)} would bear one name, {name}; give one of them"
            )
        first[name] = address
