"""A vision tower as CUDA graphs: a few hundred patches are bound by launches, and a fixed budget has a fixed shape.

One graph for each number of patches, captured when that number comes for the first time: a budget gives one of a few
numbers of groups.
"""

from collections import OrderedDict
from contextlib import nullcontext
from typing import Any, Final, NamedTuple

import torch

from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.towers import Tower, split

KEPT: Final = 8  # graphs, each with the memory of one pass; the one that was not used for longest goes first
_WARM: Final = 3  # passes before a capture, in which libraries choose their kernels


class _Graph(NamedTuple):
    graph: Any
    rows: torch.Tensor
    keywords: dict[str, torch.Tensor]  # on the device
    found: Any


class TowerGraph:
    """Encodes one frame at a time like ``Tower.encode``, on a GPU. For towers without windows, whose sizes differ.

    What ``encode`` returns is overwritten by the next frame of as many groups. ``compiled``: the blocks are compiled
    by torch before they are captured, which takes a minute for each number of patches, and saves more than half of the
    time. Raises ValueError for a tower with windows or GLM's, or on the CPU.
    """

    def __init__(self, tower: Tower, exact: bool = True, compiled: bool = False) -> None:
        if tower.device.type != "cuda":
            raise ValueError(f"a CUDA graph needs the model on a GPU, and it is on {tower.device}")
        if tower.windows:
            raise ValueError("the tower attends within windows, whose sizes differ from frame to frame: no graph fits")
        if tower.computes_boundaries:
            raise ValueError("GLM's towers read on the host what they compute on the card: no graph fits")
        self._tower = tower
        self._exact = exact
        self._compiled = compiled
        self._graphs: OrderedDict[tuple[int, ...], _Graph] = OrderedDict()

    @staticmethod
    def fits(tower: Tower) -> bool:
        """Whether a graph can be made of ``tower``."""
        return tower.device.type == "cuda" and not (tower.windows or tower.computes_boundaries)

    def encode(self, rows: torch.Tensor, groups: Groups) -> Any:
        """Features of a frame's groups, as the model's ``mm_encoder_outputs`` wants them; at least one group."""
        grid, keywords = self._tower.inputs([groups], self._exact)
        key = (len(rows), *groups.grid, keywords["position_ids"].dtype.itemsize)
        known = self._graphs.get(key)
        if known is None:
            known = self._graphs[key] = self._captured(rows, grid, keywords)
            if len(self._graphs) > KEPT:
                self._graphs.popitem(last=False)
        self._graphs.move_to_end(key)
        known.rows.copy_(rows, non_blocking=True)
        for name, buffer in known.keywords.items():
            buffer.copy_(keywords[name], non_blocking=True)
        known.graph.replay()
        return split(type(known.found)(**known.found), [len(groups)])

    def _captured(self, rows: torch.Tensor, grid: torch.Tensor, keywords: dict[str, torch.Tensor]) -> _Graph:
        tower = self._tower
        own = rows.to(tower.device, tower.dtype, copy=True)
        device = {name: value.clone() for name, value in keywords.items() if value.is_cuda}
        given = keywords | device
        side = torch.cuda.Stream(tower.device)
        side.wait_stream(torch.cuda.current_stream(tower.device))
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), tower.compiled() if self._compiled else nullcontext():
            with torch.cuda.stream(side):
                for _ in range(_WARM):
                    tower.run(own, grid, given)
            torch.cuda.current_stream(tower.device).wait_stream(side)
            with torch.cuda.graph(graph):
                found = tower.run(own, grid, given)
        return _Graph(graph, own, device, found)
