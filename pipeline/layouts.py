"""Layouts: which channels a stack holds, in which order. TOML files, those in configs/layouts by their names."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import foveate.configs
from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import shown_value
from foveate.pipeline.small_files import small_toml

Layout = tuple[str, ...]  # names of channels; their places in it are their places in the stack


def layouts() -> dict[str, Path]:
    """The layouts that come with Foveate, by name."""
    folders = [Path(entry) / "layouts" for entry in foveate.configs.__path__]
    found = (path for folder in folders if folder.is_dir() for path in folder.glob("*.toml"))
    return dict(sorted((path.stem, path) for path in found))


def load_layout(name: str) -> Layout:
    """The layout ``name``, or the one in this TOML file: ``channels = ["red", ...]``. Raises SettingsError."""
    known = layouts()
    path = known.get(name, Path(name))
    if name not in known and path.suffix != ".toml":
        raise SettingsError(f"{name!r} is neither a layout nor a TOML file; layouts are {', '.join(known)}")
    try:
        content = small_toml(path)
    except OSError as error:
        raise SettingsError(f"cannot read the layout {path}: {error.strerror}") from None
    except ValueError as error:  # not text, or not TOML
        raise SettingsError(f"the layout {path} is not valid TOML: {error}") from None
    return _checked(content, path)


def _checked(content: Mapping[str, object], path: Path) -> Layout:
    channels = content.get("channels")
    if content.keys() != {"channels"} or not isinstance(channels, list) or not channels:
        raise SettingsError(f"the layout {path} must hold a list of channels, and nothing else")
    for place, name in enumerate(channels):
        if not isinstance(name, str) or name not in BY_NAME:
            raise SettingsError(f"the layout {path} names {shown_value(name)}, which is not a channel")
        if name in channels[:place]:
            raise SettingsError(f"the layout {path} names {shown_value(name)} twice")
    return tuple(channels)


def cut(layout: Sequence[str], used: Collection[str]) -> Layout:
    """The layout without the channels that are not ``used``; the others keep their order."""
    return tuple(name for name in layout if name in used)


def stack(maps: Mapping[str, NDArray[np.float32]], layout: Sequence[str]) -> NDArray[np.float32]:
    """The maps of one shape as an array float32[C, rows, columns], in the order of ``layout``.

    Raises ValueError where one of them is missing.
    """
    missing = [name for name in layout if name not in maps]
    if missing:
        raise ValueError(f"the layout needs the map {missing[0]!r}; open the stream with it among maps")
    return np.stack([np.asarray(maps[name], np.float32) for name in layout])
