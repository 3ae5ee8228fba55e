"""The model of ``--encode DIR``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from foveate.app.unused import holds_arrays
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.keywords import overridden
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks.encoding import Encoder
from foveate.pipeline.vlm.model_folder import OFFLINE, ModelFolder

_SIGLIP2: Final = ("siglip2", "siglip2_vision_model")


def open_encoder(folder: str, outputs: Sequence[str]) -> Encoder:
    """The encoder in ``folder``, for the outputs that hold embeddings, on the GPU where torch finds one.

    Raises SettingsError for outputs that hold none, and for what is no folder of a model; ModelError for one that does
    not fit or cannot be loaded.
    """
    if not any(map(holds_arrays, outputs)):
        raise SettingsError(
            f"--encode {folder} needs an output that holds embeddings, .npz or .safetensors; give one with --out"
        )
    model = ModelFolder(Path(folder), "--encode", _SIGLIP2, besides="; so does SigLIP 2")
    kind = model.kind()
    return model.loaded(lambda: _siglip2(folder) if kind in _SIGLIP2 else _tower(folder))


def with_merge(settings: Settings, encoder: Encoder, folder: str) -> Settings:
    """The settings with the model's ``allocation.merge``. Raises SettingsError where another one is set."""
    merge = settings.allocation.merge
    if merge not in (1, encoder.merge):
        wanted = f"leave it out, the model decides: {encoder.merge}"
        raise SettingsError(f"--allocation.merge {merge} does not fit --encode {folder}; {wanted}")
    return overridden(settings, {"allocation": {"merge": encoder.merge}})


def _tower(folder: str) -> Encoder:
    import torch
    import transformers

    from foveate.pipeline.vlm.encoders import TowerEncoder

    images = transformers.AutoImageProcessor.from_pretrained(folder, **OFFLINE)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder, dtype="auto", **OFFLINE)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return TowerEncoder(model.to(device).eval(), images.image_mean, images.image_std, folder)


def _siglip2(folder: str) -> Encoder:
    import torch
    import transformers

    from foveate.pipeline.vlm.encoders import Siglip2Encoder

    model = transformers.Siglip2VisionModel.from_pretrained(folder, dtype="auto", **OFFLINE)
    return Siglip2Encoder(model.to("cuda" if torch.cuda.is_available() else "cpu").eval(), folder)
