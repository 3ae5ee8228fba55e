"""Gemma 4's vision tower, given the chosen patches alone.

It takes the place of each patch as whole numbers, which at once choose entries of its position table, turn its queries
and keys, and tell which 3x3 patches are averaged into one group, numbered as in a whole grid. Chosen patches need these
three apart: so its parts are called one after the other, in its own order, each with what it is to know. Nothing of
them is changed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers.modeling_outputs import BaseModelOutputWithPooling

from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.rows import pixel_rows, resampled
from foveate.pipeline.vlm.tower_places import centres
from foveate.pipeline.vlm.towers import Tower


class Gemma4Tower(Tower):
    """The vision tower of a Gemma 4 model.

    Its position table is read at the entries of the cell that holds a token's centre, and between two of them where the
    centre of a coarse token lies between two cells.
    """

    def __init__(self, model: Any) -> None:
        """Raises ValueError, in one line, for a model that does not fit."""
        self._model = model
        self.visual = model.model.vision_tower
        if self.visual is None:
            raise ValueError("this Gemma 4 has no vision tower, and can be asked about text alone")
        config = self.visual.config
        self.patch, self.frames, self.merge = int(config.patch_size), 1, int(config.pooling_kernel_size)
        self.computes_boundaries = self.windows = False

    @property
    def dtype(self) -> torch.dtype:
        """The type of its input rows: it scales them to [-1, 1] before it rounds them to its weights' type."""
        return torch.float32

    def rows(self, patches: NDArray[np.uint8], mean: Sequence[float], std: Sequence[float]) -> torch.Tensor:
        """The rows that ``encode`` takes of patches: uint8[K, P, P, 3] -> float32[K, 3*patch*patch]."""
        return torch.from_numpy(pixel_rows(resampled(patches, self.patch), mean, std))

    def inputs(self, frames: Sequence[Groups], exact: bool) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """How many groups each frame has, on the host, and all that ``run`` takes besides the rows.

        Patches go in row by row, as they do of a whole picture, each frame filled up to the longest.
        """
        each, counts = self.merge**2, torch.tensor([len(groups) for groups in frames])
        shape = len(frames), int(counts.max()) * each
        order, at = torch.zeros(shape, dtype=torch.int64), torch.full((*shape, 2), -1.0)
        pooling = torch.full((*shape, 2), -1)
        before = 0
        for number, groups in enumerate(frames):
            places = torch.from_numpy(centres([groups], exact)[:, ::-1].copy())  # the tower takes columns first
            by_row = torch.from_numpy(np.lexsort(places.T.numpy()))
            count = len(by_row)
            order[number, :count] = before + by_row
            at[number, :count] = places[by_row]
            # As if the groups lay side by side in one row: then the tower numbers them in their order.
            group, part = by_row // each, by_row % each
            pooling[number, :count, 0] = group * self.merge + part % self.merge
            pooling[number, :count, 1] = part // self.merge
            before += count
        keywords = {"order": order, "position_ids": at, "pooling": pooling}
        if (counts != counts[0]).any():
            keywords["shown"] = at[..., 0] >= 0
        return counts, {name: value.to(self.device) for name, value in keywords.items()}

    def run(self, rows: torch.Tensor, grid: torch.Tensor, keywords: Mapping[str, torch.Tensor]) -> Any:
        """The tower's output for rows, counts and keywords as ``inputs`` gives them."""
        visual, at, shown = self.visual, keywords["position_ids"], keywords.get("shown")
        nowhere = torch.full(at.shape[:2], True, device=at.device)
        beyond = ~nowhere if shown is None else ~shown
        patches = visual.patch_embedder(rows[keywords["order"]], at.new_zeros(at.shape, dtype=torch.int64), nowhere)
        embedded = patches + torch.where(beyond[..., None], 0.0, self._positions(at)).to(patches.dtype)
        seen = visual.encoder(inputs_embeds=embedded, attention_mask=shown, pixel_position_ids=at)
        length = at.shape[1] // self.merge**2
        pooled, _ = visual.pooler(seen.last_hidden_state, keywords["pooling"], beyond, length)
        groups = torch.cat([each[:count] for each, count in zip(pooled, grid.tolist(), strict=True)])
        if visual.config.standardize:
            groups = (groups - visual.std_bias.float()) * visual.std_scale.float()
        hidden = groups.to(patches.dtype)
        found = self._model.model.embed_vision(inputs_embeds=hidden)
        return BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=found)

    def _positions(self, at: torch.Tensor) -> torch.Tensor:
        """Of the table, at places [B, N, 2]: the entry there, or what lies between two. [B, N, D]."""
        table = self.visual.patch_embedder.position_embedding_table
        low = at.floor()
        share = (at - low).to(table.dtype)
        last = table.shape[1] - 1
        taps = [(low.long() + step).clamp(0, last) for step in (0, 1)]
        x, y = (
            table[axis][taps[0][..., axis]] * (1 - share[..., axis, None])
            + table[axis][taps[1][..., axis]] * share[..., axis, None]
            for axis in (0, 1)
        )
        return x + y
