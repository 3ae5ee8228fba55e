"""One shard as a file: NPZ or safetensors, written and read back."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from foveate.pipeline.npz import npz_arrays
from foveate.pipeline.sinks.destination import place_of
from foveate.pipeline.sinks.format import Format
from foveate.pipeline.sinks.shards import SHARD_BYTES, Arrays, Save, ShardPart, ShardSink, shard_path


def save_npz(path: Path, arrays: Arrays, header: str) -> None:
    """Write arrays and header as an NPZ file that needs no pickle. Raises OSError.

    It is not compressed: patches hardly shrink, and would take seconds per shard.
    """
    content: dict[str, Any] = {"header": np.array(header), **arrays}
    with path.open("wb") as file:
        np.savez(file, **content)  # its allow_pickle is an array's name before NumPy 2.2


def save_safetensors(path: Path, arrays: Arrays, header: str) -> None:
    """Write arrays and header as a safetensors file. Raises OSError.

    The library's own save_file leaves temporary files behind when interrupted, and with more than one entry of
    metadata its bytes differ from run to run.
    """
    path.write_bytes(save(arrays, metadata={"foveate": header}))


def read_shards(path: str | Path) -> Iterator[tuple[dict[str, Any], Arrays]]:
    """Header and arrays of each shard of ``out.npz`` or ``out.safetensors``, in order, one at a time.

    Raises OSError where a file cannot be read, ValueError where it is not such a shard.

    >>> with open_stream("clip.mp4", sinks=[open_sink("tokens.npz")], source={"frames": 3}) as stream:
    ...     tokens = sum(len(selection) for selection in stream)
    >>> header, arrays = next(read_shards("tokens.npz"))
    >>> arrays["patches"].shape == (tokens, 16, 16, 3)
    True
    """
    first = place_of(path)  # the others lie beside it
    read = _load_safetensors if Path(path).suffix.lower() == ".safetensors" else _load_npz
    number, current = 0, first
    while number == 0 or current.exists():
        yield _load(current, read)
        number += 1
        current = shard_path(first, number)


def _load(path: Path, read: Callable[[Path], tuple[str, Arrays]]) -> tuple[dict[str, Any], Arrays]:
    try:
        header, arrays = read(path)
        return json.loads(header), arrays
    except (KeyError, ValueError, SafetensorError):
        raise ValueError(f"{path} must be a shard that Foveate wrote; it is another file, or cut short") from None


def _load_npz(path: Path) -> tuple[str, Arrays]:
    arrays = npz_arrays(path)
    return str(arrays.pop("header")), arrays


def _load_safetensors(path: Path) -> tuple[str, Arrays]:
    with safe_open(path, framework="np") as file:
        return (file.metadata() or {})["foveate"], {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def _format(save: Save) -> Format:
    return Format(partial(ShardPart, save=save), size=SHARD_BYTES, several=partial(ShardSink, save=save))


NPZ: Final = _format(save_npz)
SAFETENSORS: Final = _format(save_safetensors)
