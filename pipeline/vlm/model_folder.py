"""A model of transformers from a folder, and one-line errors for whatever is wrong with it."""

import contextlib
import json
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from foveate.pipeline.errors import ModelError, SettingsError, one_line
from foveate.pipeline.extras import install_command
from foveate.pipeline.small_files import small_text
from foveate.pipeline.vlm.families import TRIED, refusal

OFFLINE: Final[dict[str, Any]] = {"local_files_only": True, "trust_remote_code": False}
"""How everything is loaded: nothing is downloaded, and no code from the folder runs."""

_T = TypeVar("_T")


class ModelFolder(NamedTuple):
    """The folder that was given, and what the error messages about it say."""

    path: Path
    flag: str  # such as "--model"
    further: tuple[str, ...] = ()  # supported types besides the families
    otherwise: str = ""  # follows the message that the path is no folder
    besides: str = ""  # follows the list of supported types

    def kind(self) -> str:
        """The ``model_type`` of the model. Raises the errors that show before anything large is loaded."""
        if not self.path.is_dir():
            raise SettingsError(f"{self.flag} must be a folder with a model, got {str(self.path)!r}{self.otherwise}")
        try:
            config = json.loads(small_text(self.path / "config.json"))
            kind, vision = config.get("model_type"), config.get("vision_config")
        except FileNotFoundError:
            raise SettingsError(
                f"{self.flag} {self.path} has no config.json, so it is not a transformers model"
            ) from None
        except (OSError, ValueError, AttributeError) as error:
            raise self._cannot_load(error, "config.json: ") from None
        if (
            kind not in self.further
            and (why := refusal(kind, vision if isinstance(vision, dict) else None)) is not None
        ):
            raise ModelError(f"{self.path}: {why}{self.besides}")
        return str(kind)

    def loaded(self, load: Callable[[], _T]) -> _T:
        """What ``load`` makes of the folder, with torch and transformers. Raises ModelError."""
        self._import_all()
        try:
            return load()
        except ImportError as error:
            raise ModelError(f"{self.path} needs more: {one_line(error)}; {install_command('vlm')}") from error
        except Exception as error:  # libraries raise errors of any kind for broken files
            raise self._cannot_load(error) from error

    def _import_all(self) -> None:
        try:
            import torch  # noqa: F401
            import transformers

            import foveate.pipeline.vlm.reader  # noqa: F401
        except ImportError as error:
            self._refuse_old_version()
            what = error.name or one_line(error)
            raise ModelError(
                f"{self.flag} DIR needs {what}, which is not installed: {install_command('vlm')}"
            ) from None
        self._refuse_old_version()
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()

    def _refuse_old_version(self) -> None:
        with contextlib.suppress(metadata.PackageNotFoundError):
            version = metadata.version("transformers")
            if _numbers(version) < _numbers(TRIED[0])[:2]:
                raise ModelError(
                    f"{self.flag} DIR needs transformers {TRIED[0]} or later, got {version}: {install_command('vlm')}"
                )

    def _cannot_load(self, error: Exception, where: str = "") -> ModelError:
        return ModelError(f"the model in {self.path} cannot be loaded: {where}{one_line(error)}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
