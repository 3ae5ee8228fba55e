"""A model's learned position table, read at places of a batch."""

import torch

from foveate.pipeline.vlm.places import Kernel, table_weights


def read_table(table: torch.Tensor, places: torch.Tensor, kernel: Kernel, square: bool = False) -> torch.Tensor:
    """Position embeddings [B, N, D], float32, of ``places`` [B, N, PLACE] from ``table`` [rows, columns, D].

    ``square``: the table is spread over a square of the grid's longer side, as models that keep the aspect do.
    """
    down, across = axis_weights(places, tuple(table.shape[:2]), kernel, square)
    return torch.einsum("bnr,bnc,rcd->bnd", down.to(table.device), across.to(table.device), table.float())


def axis_weights(
    places: torch.Tensor, entries: tuple[int, ...], kernel: Kernel, square: bool = False, antialias: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """For rows and columns the weights [B, N, entries], float32 on the CPU; see ``table_weights``."""
    axes = []
    for axis in range(2):
        weights = []
        for picture in places.detach().cpu().float().numpy():
            cells = int(picture[0, 3:].max()) if square else int(picture[0, 3 + axis])
            weights.append(
                torch.from_numpy(
                    table_weights(picture[:, axis], picture[:, 2], cells, entries[axis], kernel, antialias)
                )
            )
        axes.append(torch.stack(weights))
    return axes[0], axes[1]
