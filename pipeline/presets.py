"""Settings from TOML files: the user's own, or the presets that come with Foveate."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

import foveate.configs
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import complaint, nearest
from foveate.pipeline.small_files import small_toml


def presets() -> dict[str, Path]:
    """The presets that come with Foveate, by name."""
    # An editable install maps the folder by a path hook, whose own entry in __path__ is no folder.
    folders = [Path(entry) for entry in foveate.configs.__path__]
    found = (path for folder in folders if folder.is_dir() for path in folder.glob("*.toml"))
    return {path.stem: path for path in sorted(found)}


def load_preset(name: str | None) -> Settings:
    """The settings in the TOML file or preset ``name``; the defaults for None. Raises SettingsError."""
    if name is None:
        return Settings()
    path = _find(name)
    try:
        return Settings.model_validate(_read(path))
    except ValidationError as error:
        raise SettingsError(f"{path}: {complaint(error, '.'.join)}") from error


def _find(name: str) -> Path:
    known = presets()
    if name in known:
        return known[name]
    path = Path(name)
    if not path.exists() and path.suffix != ".toml" and "/" not in name:
        raise SettingsError(
            f"--config {name!r} is neither a preset nor a file; {nearest(name, known)}presets are {', '.join(known)}"
        )
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        return small_toml(path)
    except OSError as error:
        raise SettingsError(f"cannot read the configuration {path}: {error.strerror}") from error
    except ValueError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}") from error
