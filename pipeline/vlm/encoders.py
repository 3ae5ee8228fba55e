"""Vision models as encoders of Selections, for outputs that hold embeddings; see ``sinks.encoding``."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray

from foveate.pipeline.errors import out_of_memory_advice
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.siglip2 import attach, inputs
from foveate.pipeline.vlm.tower_graph import KEPT, TowerGraph
from foveate.pipeline.vlm.towers import Tower

_OFTEN: Final = 3  # frames of one size before a graph is captured for them, which takes as long as about ten passes
_ADVICE: Final = "encode fewer tokens a frame with a smaller --budget"  # when memory runs out


class TowerEncoder:
    """The vision tower of a vision-language model: an embedding, as wide as the language model's, for each group.

    On a GPU, frames of sizes that come often pass through CUDA graphs where the tower allows them. Features of further
    layers (deepstack) are not among the embeddings.
    """

    def __init__(self, model: Any, mean: Sequence[float], std: Sequence[float], name: str) -> None:
        """``mean`` and ``std`` are the image processor's. Raises ValueError for a model that does not fit."""
        self.name = name
        self._tower = Tower(model)
        self.merge = self._tower.merge
        self._width = int(model.get_input_embeddings().embedding_dim)
        self._mean, self._std = mean, std
        self._graph = TowerGraph(self._tower) if TowerGraph.fits(self._tower) else None
        self._seen: Counter[tuple[int, ...]] = Counter()
        self._graphed: set[tuple[int, ...]] = set()

    def encode(self, selection: Selection) -> NDArray[np.float32]:
        """See Encoder: float32[G, D]. Raises ValueError without patches or groups, ModelError without memory."""
        groups = Groups.of(selection, self.merge)
        found = np.empty((len(groups), self._width), np.float32)
        if len(groups):
            rows = self._tower.rows(_patches(selection)[groups.order], self._mean, self._std)
            with out_of_memory_advice(_ADVICE):
                by_place = self._features(rows, groups).float().cpu().numpy()
            found[groups.order[:: self.merge**2] // self.merge**2] = by_place
        return found

    def _features(self, rows: torch.Tensor, groups: Groups) -> torch.Tensor:
        graph = self._graph
        if graph is not None and self._comes_often((len(groups), *groups.grid)):
            return torch.as_tensor(graph.encode(rows, groups).pooler_output[0])
        return torch.as_tensor(self._tower.encode(rows, [groups]).pooler_output[0])

    def _comes_often(self, size: tuple[int, ...]) -> bool:
        """Whether frames of this size have a graph. Their number is limited, so that not every frame captures one."""
        self._seen[size] += 1
        if self._seen[size] > _OFTEN and len(self._graphed) < KEPT:
            self._graphed.add(size)
        return size in self._graphed


class Siglip2Encoder:
    """SigLIP 2: the last layer's embedding of each token, at the token's own position."""

    merge = 1

    def __init__(self, model: Any, name: str) -> None:
        """``model`` is a Siglip2VisionModel. Raises ValueError for one that does not fit."""
        attach(model)
        self.name = name
        self._model = model
        config = model.config
        if config.patch_size != PATCH:
            raise ValueError(f"patches must have {PATCH} pixels along each side, and the model's {config.patch_size}")
        self._width = int(config.hidden_size)

    def encode(self, selection: Selection) -> NDArray[np.float32]:
        """See Encoder: float32[K, D]. Raises ValueError without patches, ModelError without memory."""
        _patches(selection)
        if not len(selection):
            return np.empty((0, self._width), np.float32)
        with out_of_memory_advice(_ADVICE), torch.no_grad():
            given = {name: value.to(self._model.device) for name, value in inputs([selection]).items()}
            return np.asarray(self._model(**given).last_hidden_state[0].float().cpu().numpy())


def _patches(selection: Selection) -> NDArray[np.uint8]:
    if selection.patches is None:
        raise ValueError("the selections must hold patches; open the stream with patches=True")
    return selection.patches
