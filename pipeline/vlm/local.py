"""Loads a vision-language model of transformers from a folder on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foveate.pipeline.vlm.model_folder import OFFLINE, ModelFolder

if TYPE_CHECKING:
    from foveate.pipeline.vlm.reader import Reader


def local_reader(path: Path, otherwise: str = "", besides: str = "") -> Reader:
    """The model in the folder that --model names, on the GPU where there is one; for the rest see ModelFolder.

    Raises SettingsError for what is no folder of a model, ModelError for one that cannot be loaded.
    """
    folder = ModelFolder(path, "--model", otherwise=otherwise, besides=besides)
    folder.kind()
    return folder.loaded(lambda: _loaded(path))


def _loaded(path: Path) -> Reader:
    import torch
    import transformers

    from foveate.pipeline.vlm.reader import Reader

    processor = transformers.AutoProcessor.from_pretrained(path, **OFFLINE)
    model = transformers.AutoModelForImageTextToText.from_pretrained(path, dtype="auto", **OFFLINE)
    return Reader(model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), processor)
