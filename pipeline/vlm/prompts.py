"""Prompts with the chosen groups alone, each at the position that it has in the prompt of the whole picture."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from foveate.pipeline.vlm.groups import Groups


class Prompt(NamedTuple):
    """A piece of a prompt of L tokens, for a batch of one."""

    ids: torch.Tensor  # int64[1, L]
    positions: torch.Tensor  # int64[4, 1, L]: the token's number, then time, row, column; or [1, L], of 1-D models
    types: torch.Tensor  # int64[1, L]: 1 where a group of a picture stands, else 0

    @property
    def next(self) -> int:
        """The position of the next token."""
        own = self.positions[1:] if self.positions.ndim == 3 else self.positions
        return int(own.max()) + 1 if own.numel() else 0


def prompt_of(model: Any, ids: Sequence[int], frames: Sequence[Groups]) -> Prompt:
    """The prompt ``ids``, which hold the image token once for each of ``frames``, with their groups in place of it.

    They stand between the model's ``marks``. Raises ValueError where it stands more or less often.
    """
    image = model.config.image_token_id
    if (count := list(ids).count(image)) != len(frames):
        raise ValueError(f"the prompt must hold one picture for each of {len(frames)} frames, got {count}")
    before, after = marks(model)
    kept: list[bool] = []
    whole: list[int] = []
    following = iter(frames)
    for token in ids:
        if token != image:
            kept.append(True)
            whole.append(token)
            continue
        groups = next(following)
        places = torch.zeros(groups.grid[0] * groups.grid[1], dtype=torch.bool)
        places[torch.from_numpy(groups.position)] = True
        kept += [*(True for _ in before), *places.tolist(), *(True for _ in after)]
        whole += [*before, *([image] * len(places)), *after]
    every, mask = torch.tensor([whole], dtype=torch.int64), torch.tensor(kept, dtype=torch.bool)
    types = (every == image).long()
    return Prompt(every[:, mask], _positions(model, every, types, frames, mask), types[:, mask])


def marks(model: Any) -> tuple[list[int], list[int]]:
    """Tokens that stand before and behind a picture, where the model's chat template leaves them to its processor."""
    config = model.config
    return ([config.boi_token_id], [config.eoi_token_id]) if config.model_type == "gemma4" else ([], [])


def _positions(
    model: Any, ids: torch.Tensor, types: torch.Tensor, frames: Sequence[Groups], mask: torch.Tensor
) -> torch.Tensor:
    if not hasattr(model.model, "get_rope_index"):
        return mask.nonzero()[:, 0][None]  # a picture's groups are numbered row by row
    grid = torch.tensor([[1, groups.grid[0] * groups.merge, groups.grid[1] * groups.merge] for groups in frames])
    found, _ = model.model.get_rope_index(
        ids,
        mm_token_type_ids=types.int(),
        image_grid_thw=grid if len(frames) else None,
        attention_mask=torch.ones_like(ids),
    )
    found = found[..., mask]
    return torch.cat([torch.arange(found.shape[-1]).expand(1, 1, -1), found])


def joined(before: Prompt | None, after: Prompt) -> Prompt:
    """The pieces one after the other: positions continue where the first ends."""
    if before is None:
        return after
    if after.positions.ndim == 3:
        shift = torch.tensor([before.ids.shape[1], *[before.next] * 3]).view(4, 1, 1)
        positions = torch.cat([before.positions, after.positions + shift], -1)
    else:
        positions = torch.cat([before.positions, after.positions + before.next], -1)
    return Prompt(torch.cat([before.ids, after.ids], 1), positions, torch.cat([before.types, after.types], 1))


def closed(prompt: Prompt, pictures: torch.Tensor) -> tuple[Prompt, torch.Tensor]:
    """The prompt without gaps between its pieces' positions, and by how much each token moved: int64[L], at most 0.

    ``pictures``, int64[L], is the number of each token's picture, -1 for text. Each picture is a piece, and keeps the
    distances within it; so is each other token.
    """
    own = prompt.positions[1:] if prompt.positions.ndim == 3 else prompt.positions[None]
    low, high = own.amin((0, 1)), own.amax((0, 1))
    starts = torch.ones_like(pictures, dtype=torch.bool)
    starts[1:] = (pictures[1:] < 0) | (pictures[1:] != pictures[:-1])
    piece = starts.cumsum(0) - 1
    count = int(starts.sum())
    first = torch.full((count,), int(high.max()) + 1).scatter_reduce(0, piece, low, "amin")
    last = torch.zeros(count, dtype=torch.int64).scatter_reduce(0, piece, high, "amax")
    spans = last - first + 1
    shift = (spans.cumsum(0) - spans - first)[piece]
    positions = prompt.positions.clone()
    (positions[1:] if positions.ndim == 3 else positions)[:] += shift
    return prompt._replace(positions=positions), shift
