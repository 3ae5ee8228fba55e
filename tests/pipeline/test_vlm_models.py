"""Chosen groups in whole models of each family, with random weights, against the unmodified models.

They need ``pip install torch torchvision 'transformers>=5.18'``. The right results are those of the models themselves,
fed as transformers feeds them: of all patches, or with those that were not chosen hidden from attention.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.rows import channel_rows, pixel_rows, resampled
from tests.pipeline.vlm_selections import selection_of

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm import device_rows  # noqa: E402
from foveate.pipeline.vlm.prompts import prompt_of  # noqa: E402
from foveate.pipeline.vlm.towers import Tower  # noqa: E402
from tests.models.vision_language import IMAGE, MAKERS, model_of  # noqa: E402

ROWS, COLUMNS = 4, 6  # groups of the picture
MEAN, STD = (0.5, 0.4, 0.3), (0.25, 0.3, 0.35)
EXACT_ATTENTION = [family for family in MAKERS if family != "qwen3_5"]  # it has layers of linear attention


@pytest.fixture(scope="module", params=MAKERS)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


def whole(seed: int = 0) -> Selection:
    """A Selection of all cells at full resolution, in groups, with random patches."""
    cells = itertools.product(range(ROWS), range(COLUMNS), (0, 1), (0, 1))
    tokens = [(0, 32 * c + 16 * j + 8, 32 * r + 16 * i + 8) for r, c, i, j in cells]
    made = selection_of(32 * COLUMNS, 32 * ROWS, tokens)
    made.patches[:] = np.random.default_rng(seed).integers(0, 256, made.patches.shape)
    return made


def part_of(selection: Selection, groups: list[int]) -> Selection:
    """Some groups of a Selection, in any order."""
    tokens = [4 * group + part for group in groups for part in range(4)]
    made = selection_of(
        selection.width, selection.height,
        [(int(selection.lod[k]), int(selection.x[k]), int(selection.y[k])) for k in tokens],
    )  # fmt: skip
    made.patches[:] = selection.patches[tokens]
    return made


def rows_of(tower: Tower, selection: Selection, groups: Groups) -> Any:
    patches = resampled(selection.patches[groups.order], tower.patch)
    return torch.from_numpy(channel_rows(patches, MEAN, STD, tower.frames))


def given(model: Any, selections: list[Selection], exact: bool = True) -> dict[str, Any]:
    """What is handed to the model: a prompt of text and one picture for each Selection."""
    tower = Tower(model)
    frames = [Groups.of(selection, tower.merge) for selection in selections]
    ids = [5, 6]
    for number in range(len(frames)):
        ids += [IMAGE, 20 + number, 21]
    prompt = prompt_of(model, ids, frames)
    rows = torch.cat([rows_of(tower, *each) for each in zip(selections, frames, strict=True)])
    outputs = {"image": tower.encode(rows, frames, exact)} if len(rows) else None
    return {"input_ids": prompt.ids, "position_ids": prompt.positions, "mm_encoder_outputs": outputs}


def as_usual(model: Any, selections: list[Selection]) -> dict[str, Any]:
    """What transformers itself hands to the model, of the whole pictures."""
    tower = Tower(model)
    frames = [Groups.of(selection, tower.merge) for selection in selections]
    ids = [5, 6]
    for number in range(len(frames)):
        ids += [IMAGE] * (ROWS * COLUMNS) + [20 + number, 21]
    given = torch.tensor([ids])
    pixels = torch.cat([rows_of(tower, *each) for each in zip(selections, frames, strict=True)])
    grid = torch.tensor([[1, 2 * ROWS, 2 * COLUMNS]] * len(frames))
    inputs = {"input_ids": given, "pixel_values": pixels, "image_grid_thw": grid}
    if model.config.model_type == "video_llama_3":
        return inputs | {"image_merge_sizes": torch.tensor([2] * len(frames))}
    return inputs | {"mm_token_type_ids": (given == IMAGE).int()}


@torch.no_grad()
def test_with_all_groups_the_model_is_as_it_is(model: Any) -> None:
    selections = [whole(1), whole(2)]
    expected = model(**as_usual(model, selections)).logits
    assert (model(**given(model, selections)).logits - expected).abs().max() == 0.0


@torch.no_grad()
def test_with_all_groups_it_says_the_same(model: Any) -> None:
    selections = [whole(1), whole(2)]
    say = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False}
    usual, ours = as_usual(model, selections), given(model, selections)
    expected = model.generate(**usual, **say)[0, usual["input_ids"].shape[1] :]
    found = model.generate(**ours, **say)[0, ours["input_ids"].shape[1] :]
    assert len(expected) == 24
    assert (found == expected).all()


CHOSEN = [23, 2, 3, 9, 14, 0, 17]  # in no order


class Hiding:
    """An attention function for a tower that sees the whole picture: keys of groups that were not chosen are hidden.

    A tower calls it for one stretch of patches after another, in its own order, layer by layer.
    """

    def __init__(self, tower: Tower, groups: Groups, chosen: list[int]) -> None:
        kept = torch.zeros(len(groups), dtype=torch.bool)
        kept[chosen] = True
        order = tower._keywords([groups], True).get("window_index", torch.arange(len(groups)))
        self._kept = kept[order].repeat_interleave(tower.merge**2)
        self._at = 0

    def __call__(self, module: Any, query: Any, key: Any, value: Any, attention_mask: Any = None, **how: Any) -> Any:
        kept = self._kept[self._at : self._at + key.shape[2]]
        self._at = (self._at + key.shape[2]) % len(self._kept)
        logits = query @ key.transpose(2, 3) * how["scaling"]
        if kept.any():  # else nobody asks for what these patches see
            logits = logits.masked_fill(~kept, float("-inf"))
        return (logits.softmax(-1) @ value).transpose(1, 2), None


def seen_by(model: Any, selection: Selection, monkeypatch: pytest.MonkeyPatch, hide: list[int] | None = None) -> Any:
    """What the tower makes of a Selection, with the attention written out; ``hide``: all groups but these."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    tower = Tower(model)
    groups = Groups.of(selection, tower.merge)
    chosen = list(range(len(groups))) if hide is None else hide
    monkeypatch.setitem(ALL_ATTENTION_FUNCTIONS, "hiding", Hiding(tower, groups, chosen))
    visual = getattr(model.model, "visual", None) or model.model.vision_model
    monkeypatch.setattr(visual.config, "_attn_implementation", "hiding")
    return tower.encode(rows_of(tower, selection, groups), [groups])


@torch.no_grad()
def test_a_tower_sees_what_is_chosen_as_if_the_rest_were_hidden(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64: float32 sums of another number of terms differ by some 1e-6 by themselves."""
    at = sorted(CHOSEN)
    model.double()
    found = seen_by(model, part_of(whole(3), CHOSEN), monkeypatch)
    expected = seen_by(model, whole(3), monkeypatch, hide=at)
    model.float()
    assert (found.pooler_output[0] - expected.pooler_output[0][at]).abs().max() <= 1e-6
    layers = (getattr(each, "deepstack_features", None) or [] for each in (found, expected))
    for ours, theirs in zip(*layers, strict=True):
        assert (ours[0] - theirs[0][at]).abs().max() <= 1e-6


@torch.no_grad()
def test_a_language_model_reads_what_is_chosen_as_if_the_rest_were_masked(model: Any) -> None:
    """Frames of seven groups, of none, and of all; the whole prompt, with the others' placeholders masked."""
    if model.config.model_type not in EXACT_ATTENTION:
        pytest.skip("layers of linear attention know no mask")
    selections = [part_of(whole(1), CHOSEN), part_of(whole(2), []), whole(3)]
    ours = given(model, selections)
    found = model(**ours).logits[0]
    cells = ROWS * COLUMNS
    kept = torch.zeros(3, cells, dtype=torch.bool)
    kept[0, CHOSEN] = kept[2] = True
    ids, mask = [5, 6], [True, True]
    for number in range(3):
        ids += [IMAGE] * cells + [20 + number, 21]
        mask += [*kept[number].tolist(), True, True]
    whole_ids, shown = torch.tensor([ids]), torch.tensor([mask])
    positions = ours["position_ids"]
    if positions.ndim == 3:
        grid = torch.tensor([[1, 2 * ROWS, 2 * COLUMNS]] * 3)
        types = (whole_ids == IMAGE).int()
        positions, _ = model.model.get_rope_index(whole_ids, mm_token_type_ids=types, image_grid_thw=grid)
    else:
        positions = torch.arange(len(ids))[None]
    outputs = scattered(ours["mm_encoder_outputs"]["image"], kept)
    expected = model(
        input_ids=whole_ids, attention_mask=shown.int(), position_ids=positions, mm_encoder_outputs={"image": outputs}
    ).logits[shown]
    assert len(found) == len(CHOSEN) + cells + 8
    assert (found - expected).abs().max() <= 5e-6


def scattered(outputs: Any, kept: Any) -> Any:
    """The features of chosen groups among zeros for the others."""

    def spread(features: Any) -> Any:
        found = torch.zeros(*kept.shape, features[0].shape[-1])
        found[kept] = torch.cat(features)
        return tuple(found)

    outputs.pooler_output = spread(outputs.pooler_output)
    if getattr(outputs, "deepstack_features", None) is not None:
        outputs.deepstack_features = [spread(each) for each in outputs.deepstack_features]
    return outputs


@torch.no_grad()
def test_rotary_positions_are_those_of_the_whole_grid(model: Any) -> None:
    tower = Tower(model)
    every, part = Groups.of(whole(), 2), Groups.of(part_of(whole(), CHOSEN), 2)
    visual = getattr(model.model, "visual", None) or model.model.vision_model
    at = torch.from_numpy(part.position)
    angles = []
    for groups in (every, part):
        ids = tower._keywords([groups], True)["position_ids"]
        angles.append(visual.rotary_pos_emb(torch.zeros(len(ids), 1), ids)[0].reshape(len(groups), 4, -1))
    assert (angles[0][at] - angles[1]).abs().max() == 0.0


@torch.no_grad()
def test_coarse_groups_stand_between_fine_ones(model: Any) -> None:
    """A group of LOD 1 over the picture's upper left 2x2 groups, and the group behind: centres by hand."""
    tokens = [(1, x, y) for y in (16, 48) for x in (16, 48)]
    tokens += [(0, 64 + x, y) for y in (8, 24) for x in (8, 24)]
    selection = selection_of(32 * COLUMNS, 32 * ROWS, tokens)
    groups = Groups.of(selection, 2)
    assert groups.position.tolist() == [
        2,
        7,
    ]  # the fine one is in row 0; the coarse one's middle is (1, 1)
    tower = Tower(model)
    assert tower._keywords([groups], False)["position_ids"][4:, 0].tolist() == [1, 1, 3, 3]
    logits = model(**given(model, [selection])).logits
    assert logits.shape[1] == 2 + 2 + 2
    assert torch.isfinite(logits).all()


def test_other_models_are_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2))
    with pytest.raises(ValueError, match=r"models of type 'gpt2' do not fit; those of qwen2_vl, "):
        Tower(model)


def test_a_prompt_needs_a_place_for_each_frame(model: Any) -> None:
    with pytest.raises(ValueError, match="one picture for each of 1 frames, got 2"):
        prompt_of(model, [1, IMAGE, 2, IMAGE], [Groups.of(whole(), 2)])


@pytest.mark.parametrize("name", ["Qwen2VLImageProcessor", "Glm4vImageProcessor", "VideoLlama3ImageProcessor"])
def test_rows_are_those_of_the_processors(name: str) -> None:
    import transformers

    made = getattr(transformers, name)(do_resize=False)
    side, merge, rng = made.patch_size, made.merge_size, np.random.default_rng(0)
    picture = rng.integers(0, 256, (4 * side, 6 * side, 3), np.uint8)
    expected = made(images=[picture], return_tensors="np")["pixel_values"]
    blocks = picture.reshape(4 // merge, merge, side, 6 // merge, merge, side, 3).transpose(0, 3, 1, 4, 2, 5, 6)
    frames = expected.shape[1] // (3 * side * side)
    found = channel_rows(blocks.reshape(-1, side, side, 3), made.image_mean, made.image_std, frames)
    assert np.abs(found - expected).max() <= 1e-7


def test_rows_are_those_of_the_processor_of_siglip_2() -> None:
    from transformers import Siglip2ImageProcessor

    made = Siglip2ImageProcessor(do_resize=False, max_num_patches=24)
    picture = np.random.default_rng(0).integers(0, 256, (64, 96, 3), np.uint8)
    expected = made(images=[picture], return_tensors="np")["pixel_values"][0]
    patches = picture.reshape(4, 16, 6, 16, 3).swapaxes(1, 2).reshape(-1, 16, 16, 3)
    assert np.abs(pixel_rows(patches, made.image_mean, made.image_std) - expected).max() <= 1e-7


@pytest.mark.filterwarnings("ignore")  # those of torch's own compiler
def test_blocks_are_compiled_for_a_while(model: Any) -> None:
    tower = Tower(model)
    before = [type(module) for module in tower._visual.modules()]
    with tower.compiled():
        compiled = [type(module).__name__ for module in tower._visual.modules()]
        assert compiled.count("OptimizedModule") == 2  # all families have two blocks here
    assert [type(module) for module in tower._visual.modules()] == before


@pytest.mark.parametrize("count", [0, 5])
def test_rows_made_on_a_device_are_the_same(count: int) -> None:
    patches = np.random.default_rng(0).integers(0, 256, (count, 16, 16, 3), np.uint8)
    found = device_rows.channel_rows(torch.from_numpy(patches), MEAN, STD, 2)
    assert found.shape == (count, 1536)
    assert np.abs(found.numpy() - channel_rows(patches, MEAN, STD, 2)).max(initial=0) <= 1e-6  # a product, rounded
