"""Embeddings of a vision tower on a card, with CUDA graphs where they fit, are those on the host."""

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm.encoders import TowerEncoder  # noqa: E402
from foveate.pipeline.vlm.groups import Groups  # noqa: E402
from foveate.pipeline.vlm.tower_graph import TowerGraph  # noqa: E402
from tests.models.vision_language import MAKERS, model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, MEAN, STD, part_of, whole  # noqa: E402


@pytest.mark.gpu
@pytest.mark.parametrize("family", MAKERS)
def test_frames_of_a_size_that_comes_often(family: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graphed = set()

    class Noting(TowerGraph):
        def encode(self, rows: Any, groups: Groups) -> Any:
            graphed.add(len(groups))
            return super().encode(rows, groups)

    monkeypatch.setattr("foveate.pipeline.vlm.encoders.TowerGraph", Noting)
    on_host = TowerEncoder(model_of(family), MEAN, STD, family)
    on_card = TowerEncoder(model_of(family).cuda(), MEAN, STD, family)
    sizes = [CHOSEN, CHOSEN[:3], CHOSEN, [], CHOSEN, CHOSEN[:3], CHOSEN, CHOSEN[:3], CHOSEN, CHOSEN[:3], [4]]
    with torch.backends.cudnn.flags(allow_tf32=False):  # else convolutions keep three digits
        for seed, chosen in enumerate(sizes):
            selection = part_of(whole(seed, on_host.merge), chosen)
            found, expected = on_card.encode(selection), on_host.encode(selection)
            assert found.shape == (len(chosen), 32)
            np.testing.assert_allclose(found, expected, atol=1e-4)  # sums of float32 in another order
    assert len(graphed) == (0 if family == "qwen2_5_vl" or family.startswith("glm") else 2)
