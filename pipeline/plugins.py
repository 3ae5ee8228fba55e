"""Functions of the user's own, named in the settings as ``module:function`` or ``path/to/file.py:function``."""

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.small_files import refuse_endless


def load_function(name: str) -> Callable[..., Any]:
    """The function ``name``. Its module is imported, so what that does is done. Raises SettingsError, one line."""
    place, colon, function = name.rpartition(":")
    if not colon or not place or not function:
        raise SettingsError(f"a plug-in is written module:function or file.py:function, got {name!r}")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except Exception as error:  # whatever the user's own code raises
        raise SettingsError(f"the plug-in {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, function, None)
    if not callable(found):
        raise SettingsError(f"the plug-in {name!r} cannot be used: {place} has no function {function!r}")
    return found


def _from_file(path: Path) -> ModuleType:
    refuse_endless(path)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
