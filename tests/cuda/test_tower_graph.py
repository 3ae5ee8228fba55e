"""A vision tower as a CUDA graph gives what the tower gives."""

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm.groups import Groups  # noqa: E402
from foveate.pipeline.vlm.tower_graph import TowerGraph  # noqa: E402
from foveate.pipeline.vlm.towers import Tower  # noqa: E402
from tests.models.vision_language import MAKERS, model_of  # noqa: E402
from tests.pipeline.test_vlm_models import CHOSEN, part_of, rows_of, whole  # noqa: E402


def test_a_graph_needs_a_card_and_a_tower_without_windows() -> None:
    with pytest.raises(ValueError, match="needs the model on a GPU"):
        TowerGraph(Tower(model_of("qwen3_vl")))


@pytest.mark.gpu
@pytest.mark.parametrize("family", ["qwen2_vl", "qwen3_vl", "qwen3_5", "video_llama_3", "gemma4"])
def test_frames_of_several_sizes_one_after_the_other(family: str) -> None:
    tower = Tower(model_of(family).cuda())
    graph = TowerGraph(tower)
    for chosen in (CHOSEN, CHOSEN[:3], [1, 5, 20], list(range(24)), CHOSEN):
        selection = part_of(whole(len(chosen), tower.merge), chosen)
        groups = Groups.of(selection, tower.merge)
        rows = rows_of(tower, selection, groups)
        found, expected = graph.encode(rows, groups), tower.encode(rows, [groups])
        assert (found.pooler_output[0] - expected.pooler_output[0]).abs().max() <= 1e-5
        layers = (getattr(each, "deepstack_features", None) or [] for each in (found, expected))
        for ours, theirs in zip(*layers, strict=True):
            assert (ours[0] - theirs[0]).abs().max() <= 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize("family", MAKERS)
def test_towers_see_the_same_on_a_card(family: str) -> None:
    on_host = Tower(model_of(family))
    selection = part_of(whole(5, on_host.merge), CHOSEN)
    groups = Groups.of(selection, on_host.merge)
    rows = rows_of(on_host, selection, groups)
    expected = on_host.encode(rows, [groups]).pooler_output[0]
    with torch.backends.cudnn.flags(allow_tf32=False):  # else convolutions keep three digits
        found = Tower(model_of(family).cuda()).encode(rows, [groups]).pooler_output[0].cpu()
    assert (found - expected).abs().max() <= 1e-4  # sums of float32 in another order


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # those of torch's own compiler: what it uses is deprecated, TF32 is off
def test_compiled_blocks_give_the_same() -> None:
    tower = Tower(model_of("qwen3_vl").cuda())
    graph = TowerGraph(tower, compiled=True)
    for chosen in (CHOSEN, [1, 5, 20]):
        selection = part_of(whole(len(chosen), tower.merge), chosen)
        groups = Groups.of(selection, tower.merge)
        rows = rows_of(tower, selection, groups)
        found, expected = graph.encode(rows, groups), tower.encode(rows, [groups])
        assert (found.pooler_output[0] - expected.pooler_output[0]).abs().max() <= 1e-4


@pytest.mark.gpu
def test_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="within windows"):
        TowerGraph(Tower(model_of("qwen2_5_vl").cuda()))
