"""vLLM's vision towers of the Qwen families, given the chosen patches alone.

A tower of vLLM works out from the grids of its pictures what its blocks need, with what its attention needs on the
device at hand, and takes that as ``encoder_metadata``. Attention depends on how many patches there are, not on where:
it is worked out for a picture of one column of groups. What depends on the places is put in its stead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from foveate.pipeline.vlm.device_rows import channel_rows, raw_rows
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.tower_places import centres, table_entries, windows


def encode(
    visual: Any, patches: torch.Tensor, frames: Sequence[Groups], mean: Sequence[float], std: Sequence[float]
) -> tuple[torch.Tensor, ...]:
    """Features of the groups of each of ``frames``, those of further layers behind them in one row.

    ``patches`` are uint8[N, P, P, 3] on the tower's device, in the order of the groups of all frames.
    """
    times = int(visual.patch_embed.temporal_patch_size)
    if getattr(getattr(visual, "input_norm", None), "input_dtype", None) is None:
        rows = channel_rows(patches, mean, std, times)
    else:  # the tower normalises
        rows = raw_rows(patches, times)
    found = visual(rows.to(visual.dtype), columns(frames), encoder_metadata=metadata(visual, frames))
    return torch.split(found, [len(groups) for groups in frames])


def columns(frames: Sequence[Groups]) -> list[list[int]]:
    """Grids of as many groups, each in one column."""
    return [_column(len(groups), groups.merge) for groups in frames]


def _column(groups: int, merge: int) -> list[int]:
    return [1, merge * groups, merge]


def metadata(visual: Any, frames: Sequence[Groups]) -> dict[str, Any]:
    """What the tower's ``encoder_metadata`` is to be for ``frames``."""
    found = dict(visual.prepare_encoder_metadata(columns(frames)))
    at = centres(frames)
    if "pos_embeds" in found:
        found["pos_embeds"] = _table(visual, at, frames)
    if "window_index" in found:
        order = _tell_windows(visual, frames, found)
        at = at.reshape(-1, frames[0].merge ** 2, 2)[order].reshape(-1, 2)
    angles = _angles(visual.rotary_pos_emb, at)
    for name, values in (("rotary_pos_emb_cos", angles.cos()), ("rotary_pos_emb_sin", angles.sin())):
        found[name] = values.to(found[name])
    return found


def _table(visual: Any, at: NDArray[np.float32], frames: Sequence[Groups]) -> torch.Tensor:
    """Position embeddings of each patch: [N, D]."""
    table = visual.pos_embed.weight
    indices, weights = table_entries(at, frames, int(visual.num_grid_per_side))
    return (table[indices.to(table.device)] * weights.to(table)[..., None]).sum(1)


def _angles(rotary: Any, at: NDArray[np.float32]) -> torch.Tensor:
    """Rotary angles of each patch, float32[N, rotary_dim]: those of its row, then those of its column."""
    steps = torch.arange(0, rotary.rotary_dim, 2, dtype=torch.float32)
    frequencies = 1.0 / (rotary.base ** (steps / rotary.rotary_dim))
    return (torch.from_numpy(at)[:, :, None] * frequencies).flatten(1)


def _tell_windows(visual: Any, frames: Sequence[Groups], found: dict[str, Any]) -> NDArray[np.int64]:
    """Put the windows of ``frames`` into ``found``. Returns the order of the groups by windows."""
    merge = frames[0].merge
    order, sizes = windows(frames, visual.window_size // merge // visual.patch_size)
    apart = visual.prepare_encoder_metadata([_column(size, merge) for size in sizes])
    found["window_index"] = torch.from_numpy(order).to(found["window_index"].device)
    found["reverse_indices"] = torch.from_numpy(np.argsort(order)).to(found["reverse_indices"].device)
    found["cu_window_seqlens"] = apart["cu_seqlens"]
    for name in ("max_seqlen", "sequence_lengths"):
        found[f"{name}_window"] = apart.get(f"{name}_full")
    return order
