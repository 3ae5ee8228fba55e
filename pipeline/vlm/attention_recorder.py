"""Records what a model attends to while it answers, whichever attention function it uses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final, Self

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

_lock = Lock()
_open: Final[dict[str, tuple[AttentionRecorder, ...]]] = {}  # by the name of the attention function
_own: Final[dict[str, Callable[..., Any]]] = {}  # the functions that recorders wrap


class AttentionRecorder:
    """A context manager that records the attention of chosen layers of a model while it is open.

    It records what the newest token attends to: at the end of a prompt, and at each token of the answer while the next
    one is computed. Each prompt, a run of more than one token, starts anew. The model keeps its attention function
    (SDPA, FlashAttention, eager) and its output; the weights of that one token are computed beside it.

    Recorders may be opened and closed in any order and by several threads, on one model or on many; after the last one
    is closed, nothing of them is left. A recorder sees every run of its model while it is open, from any thread (an
    answer is made in a thread of its own), so do not let two threads run a model that is recorded. Batches of one.
    """

    def __init__(self, model: Any, layers: Sequence[int] | None = None) -> None:
        """``layers`` of the language model, counted from 0, or from the end as -1; default: all of full attention.

        Raises ValueError for a layer that does not exist, is not of full attention, or uses the keys of another.
        """
        known = _attentions(model)
        count = len(model.model.language_model.layers)
        chosen = list(known) if layers is None else [at + count if at < 0 else at for at in layers]
        if not chosen or not set(chosen) <= set(known):
            raise ValueError(f"layers must be some of full attention, {list(known)}, got {layers}")
        self._modules = {known[at] for at in chosen}
        self._seen: dict[Any, tuple[torch.Tensor, int]] = {}  # by module: the sum over runs, and how many

    def __enter__(self) -> Self:
        self._name = next(iter(self._modules)).config._attn_implementation
        with _lock:
            if self._name not in _open:
                _wrap(self._name)
            _open[self._name] = (*_open.get(self._name, ()), self)
        return self

    def __exit__(self, *_: object) -> None:
        with _lock:
            _open[self._name] = tuple(recorder for recorder in _open[self._name] if recorder is not self)
            if not _open[self._name]:
                _unwrap(self._name)

    @property
    def attention(self) -> NDArray[np.float32]:
        """Mean attention to each of the M tokens of the latest prompt, cached ones included: float32[M] in [0, 1].

        Over runs, layers and heads. What tokens of the answer attend to among themselves is left out. Raises
        RuntimeError where nothing was run.
        """
        if not self._seen:
            raise RuntimeError("there is no attention yet; run the model while it is open")
        means = [(total / count).cpu().numpy() for total, count in self._seen.values()]
        return np.asarray(np.mean(means, axis=0), np.float32)

    def _record(self, module: Any, query: torch.Tensor, key: torch.Tensor, mask: Any, scaling: float | None) -> None:
        if module not in self._modules:
            return
        found = _newest(query, key, mask, module.scaling if scaling is None else scaling)
        if query.shape[2] > 1 or module not in self._seen:
            self._seen[module] = found, 1
        else:
            total, count = self._seen[module]
            self._seen[module] = total + found[: len(total)], count + 1


def _attentions(model: Any) -> dict[int, Any]:
    """The attention modules of layers that see all tokens before, by their number.

    Not those that use another layer's keys: they may be asked for a prompt's last token alone.
    """
    layers = enumerate(model.model.language_model.layers)
    found = {at: layer.self_attn for at, layer in layers if hasattr(layer, "self_attn")}
    whole = {at: module for at, module in found.items() if getattr(module, "sliding_window", None) is None}
    return {at: module for at, module in whole.items() if not getattr(module, "is_kv_shared_layer", False)}


def _newest(query: torch.Tensor, key: torch.Tensor, mask: Any, scaling: float) -> torch.Tensor:
    """Attention of the last position, averaged over heads: [1, H, N, D] and [1, G, M, D], H a multiple of G -> [M]."""
    with torch.no_grad():
        heads, size = key.shape[1], query.shape[-1]
        asked = query[:, :, -1].float().reshape(len(query), heads, -1, size)
        logits = asked @ key.float().transpose(2, 3) * scaling  # [1, G, H / G, M]
        if isinstance(mask, torch.Tensor) and mask.ndim == 4:  # otherwise the last token sees all
            last = mask[:, :, -1:, : key.shape[2]]
            logits = logits.masked_fill(~last, -torch.inf) if last.dtype == torch.bool else logits + last
        return logits.softmax(-1).mean((0, 1, 2))


def _wrap(name: str) -> None:
    own = ALL_ATTENTION_FUNCTIONS.get(name)
    if own is not None:
        _own[name] = own

    def recorded(module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, **how: Any) -> Any:
        for recorder in _open.get(name, ()):
            recorder._record(module, query, key, attention_mask, how.get("scaling"))
        # The eager function is not in the table: each model has its own, beside its layers.
        function = own or sys.modules[type(module).__module__].eager_attention_forward
        return function(module, query, key, value, attention_mask, **how)

    ALL_ATTENTION_FUNCTIONS[name] = recorded


def _unwrap(name: str) -> None:
    del _open[name]
    del ALL_ATTENTION_FUNCTIONS[name]
    own = _own.pop(name, None)
    if own is not None and ALL_ATTENTION_FUNCTIONS.get(name) is not own:  # it was set for this table alone
        ALL_ATTENTION_FUNCTIONS[name] = own
