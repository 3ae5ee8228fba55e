"""open_clip's models as image-text encoders. Imports torch only when a model is opened."""

import hashlib
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from foveate.pipeline.encoders.image_text import ImageTextEncoder, Picture, Vectors, unit
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.extras import install_command
from foveate.pipeline.settings import ClipSettings
from foveate.pipeline.small_files import refuse_endless

_log = logging.getLogger(__name__)
_SHARPEST = 100.0  # CLIP's own limit of the logit scale (Radford et al. 2021)
_TAGS_SHOWN = 4


def open_model(settings: ClipSettings) -> ImageTextEncoder:
    """The model that the settings name.

    Raises SettingsError if they name none or no weights, EngineError if torch or open_clip is missing, or the
    weights or the tokenizer cannot be found, read or used.
    """
    try:
        import open_clip
        import torch
    except ImportError as error:
        raise EngineError(
            f"encoder 'open_clip' needs {error.name}: {install_command('clip')}, or use --encoder attributes"
        ) from None
    name = _named(settings.model, open_clip.list_models())
    _refuse_endless(settings.weights)
    device = settings.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(f"clip.device {device!r}: torch finds no GPU; use --clip.device cpu")
    if device == "cpu":
        torch.set_num_threads(settings.threads or max((os.cpu_count() or 2) - 1, 1))
    if settings.weights is None or not Path(settings.weights).exists():
        _log.warning("looking for the weights of %s in caches and hubs, which can take minutes", name)
    with _Quiet():
        model = _loaded(open_clip, name, settings, device)
        tokenizer = _tokenizer(open_clip, name)
    return _OpenClip(torch, model, tokenizer, f"{Path(settings.model).name} {_fingerprint(model)}", device)


def _refuse_endless(weights: str | None) -> None:
    if weights is None or not Path(weights).exists() or Path(weights).is_dir():
        return
    try:
        refuse_endless(Path(weights))
    except OSError as error:
        raise SettingsError(f"clip.weights {weights!r} cannot be read: {error.strerror}") from None


def _named(model: str, known: Sequence[str]) -> str:
    """The name in open_clip's form. Raises SettingsError if open_clip does not know it."""
    if Path(model).is_dir():
        return f"local-dir:{model}"
    if model.startswith(("hf-hub:", "local-dir:")) or model.replace("/", "-") in known:
        return model
    from difflib import get_close_matches

    near = get_close_matches(model, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else "open_clip.list_models() lists all"
    raise SettingsError(f"clip.model {model!r} is no folder and no architecture of open_clip; {hint}")


def _loaded(open_clip: Any, name: str, settings: ClipSettings, device: str) -> Any:
    """The model with its weights, never with random ones."""
    weights = settings.weights
    schema = name.startswith(("local-dir:", "hf-hub:"))
    if weights is None and not schema:
        tags = open_clip.list_pretrained_tags_by_model(name.replace("/", "-"))
        raise SettingsError(
            f"clip.weights is missing: give a file with the weights of {name}, or one of open_clip's tags for it"
            f" ({', '.join(tags[:_TAGS_SHOWN]) or 'there are none'})"
        )
    try:
        if weights is not None and Path(weights).exists():
            model = open_clip.create_model(name, None, False, "fp32", device, pretrained_text=False)
            open_clip.load_checkpoint(model, weights)
        else:
            tag = None if schema else weights
            model = open_clip.create_model(name, tag, True, "fp32", device, require_pretrained=True)
    except Exception as error:
        raise _no_weights(name, weights, schema, error) from error
    return model.eval().requires_grad_(False)


def _no_weights(name: str, weights: str | None, schema: bool, error: Exception) -> EngineError:
    reason = _first_sentence(error)
    if weights is not None and Path(weights).exists():
        return EngineError(f"{weights} does not hold the weights of {name}: {reason}")
    if weights is not None and (schema or Path(weights).suffix or "/" in weights):
        return EngineError(f"clip.weights {weights!r} is no file: give one with the weights of {name}")
    wanted = name if weights is None else f"{name} {weights!r}"
    return EngineError(
        f"the weights of {wanted} cannot be loaded ({reason}); give --clip.weights a file, or run once with a"
        f" network: python -c \"import open_clip; open_clip.create_model('{name}', {weights!r})\""
    )


def _tokenizer(open_clip: Any, name: str) -> Any:
    try:
        return open_clip.get_tokenizer(name)
    except Exception as error:
        raise EngineError(
            f"the tokenizer of {name} cannot be loaded ({_first_sentence(error)}); run once with a network:"
            f" python -c \"import open_clip; open_clip.get_tokenizer('{name}')\""
        ) from error


def _first_sentence(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].split(". ")[0]


def _fingerprint(model: Any) -> str:
    """A hash of the weights, from those that every training changes: the ends of both towers."""
    digest = hashlib.sha256()
    weights = sorted(model.state_dict().items())
    chosen = [value for key, value in weights if "proj" in key or "logit_scale" in key or "token_embedding" in key]
    for value in chosen:
        digest.update(np.ascontiguousarray(value.float().cpu().numpy()).tobytes())
    return digest.hexdigest()[:12]


class _Quiet:
    """Silences open_clip's log; its errors are raised."""

    def __enter__(self) -> None:
        self._before = logging.root.manager.disable
        logging.disable(logging.ERROR)

    def __exit__(self, *_: object) -> None:
        logging.disable(self._before)


class _OpenClip:
    """See image_text.ImageTextEncoder."""

    def __init__(self, torch: Any, model: Any, tokenizer: Any, name: str, device: str) -> None:
        from foveate.pipeline.encoders.towers import dense_tower

        self._torch = torch
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        self._dense, self._stride = dense_tower(model.visual)
        self._half = torch.autocast(device.split(":")[0], torch.float16, enabled=device.startswith("cuda"))
        size = model.visual.image_size
        self._mean = np.asarray(model.visual.image_mean, np.float32)
        self._deviation = np.asarray(model.visual.image_std, np.float32)
        self._lock = threading.Lock()
        self.id = name
        self.resolution = int(size if isinstance(size, int) else max(size))
        self.sharpness = min(float(model.logit_scale.exp().max()), _SHARPEST)
        self.dimension = int(self.encode_texts([""]).shape[1])
        self._side: int | None = None  # set if the tower takes pictures of one size only
        self._try_sizes()

    def _try_sizes(self) -> None:
        """Test whether the tower takes pictures of any size. Raises EngineError if it takes none."""
        try:
            self.encode_image(np.zeros((2 * self._stride, 3 * self._stride, 3), np.uint8), 3 * self._stride)
        except RuntimeError:
            self._side = self.resolution
            _log.warning(
                "%s takes only pictures of %d x %d; others are scaled to that, without keeping their aspect",
                self.id,
                self._side,
                self._side,
            )
            try:
                self.encode_image(np.zeros((self._side, self._side, 3), np.uint8), self._side)
            except RuntimeError as error:
                raise EngineError(f"{self.id} has no dense features: {str(error).splitlines()[0]}") from error

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """See image_text.ImageTextEncoder."""
        with self._lock, self._torch.inference_mode(), self._half:
            tokens = self._tokenizer(list(texts)).to(self._device)
            return unit(self._model.encode_text(tokens).float().cpu().numpy())

    def cuts(self, text: str) -> bool:
        """See image_text.ImageTextEncoder: true if a further word changes nothing."""
        with self._lock:
            plain, longer = self._tokenizer([text, f"{text} more"])
        return bool((plain == longer).all())

    def encode_image(self, rgb: Picture, longest: int) -> Vectors:
        """See image_text.ImageTextEncoder."""
        sides = _scaled_sides(rgb, longest, self._stride) if self._side is None else (self._side, self._side)
        scaled = (_scaled(rgb, *sides).astype(np.float32) / 255 - self._mean) / self._deviation
        with self._lock, self._torch.inference_mode(), self._half:
            picture = self._torch.from_numpy(scaled.transpose(2, 0, 1)[None].copy()).to(self._device)
            return unit(self._dense(picture).float().cpu().numpy())


def _scaled_sides(rgb: Picture, longest: int, stride: int) -> tuple[int, int]:
    """Height and width, multiples of ``stride``, that keep the aspect; the longer one is about ``longest``."""
    height, width = rgb.shape[:2]
    scale = longest / max(height, width)
    rows, columns = (max(round(side * scale / stride), 1) for side in (height, width))
    return rows * stride, columns * stride


def _scaled(rgb: Picture, height: int, width: int) -> Picture:
    way = cv2.INTER_AREA if width < rgb.shape[1] else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(rgb, (width, height), interpolation=way), np.uint8)
