"""Key-value caches of transformers: entries dropped, and the rest moved to other positions."""

import sys
from typing import Any, Final

import torch
from transformers.cache_utils import DynamicLayer

_HOLDS_NOTHING: Final = "DummyLayer"  # of a layer that uses the keys of another
_FIXED: Final = ("default", "linear", "llama3", "yarn")
"""Kinds of rotary positions whose frequencies do not depend on the length of the prompt."""


def check_droppable(model: Any, cache: Any) -> None:
    """Raises ValueError for a cache of layers whose entries cannot be dropped or moved one by one."""
    kinds = {type(layer).__name__ for layer in cache.layers if type(layer) is not DynamicLayer} - {_HOLDS_NOTHING}
    rope = _rotary(model).rope_type
    if kinds:
        raise ValueError(f"a model with layers of {', '.join(sorted(kinds))} cannot forget single tokens")
    if rope not in _FIXED:
        raise ValueError(f"positions of the kind {rope!r} cannot be moved; those of {', '.join(_FIXED)} can")


def droppable(model: Any, cache: Any) -> bool:
    """Whether ``check_droppable`` passes."""
    try:
        check_droppable(model, cache)
    except ValueError:
        return False
    return True


def keep(cache: Any, kept: torch.Tensor) -> None:
    """Drop all entries but ``kept``, int64[N], ascending. What is read later does not see the others."""
    for layer in cache.layers:
        if layer.is_initialized:
            at = kept.to(layer.keys.device)
            layer.keys, layer.values = layer.keys[:, :, at], layer.values[:, :, at]


def move(model: Any, cache: Any, shift: torch.Tensor) -> None:
    """Add ``shift``, int64[N], to the positions of the cache's N entries, the same along all axes of M-RoPE.

    Keys are turned by the angles that lie between, as rotary positions are additive (Su et al. 2021, eq. 16). Where all
    move by the same, later tokens that move with them read the same.
    """
    rotary = _rotary(model)
    axes = shift.expand(3, 1, -1) if hasattr(model.model, "get_rope_index") else shift[None]
    for number, layer in enumerate(cache.layers):
        if not layer.is_initialized:
            continue
        attention = model.model.language_model.layers[number].self_attn
        keys = layer.keys.float()
        cos, sin = (each / rotary.attention_scaling for each in rotary(keys, axes.to(keys.device)))
        turned, _ = sys.modules[type(attention).__module__].apply_rotary_pos_emb(keys, keys, cos, sin)
        layer.keys = turned.to(layer.keys.dtype)


def _rotary(model: Any) -> Any:
    return model.model.language_model.rotary_emb
