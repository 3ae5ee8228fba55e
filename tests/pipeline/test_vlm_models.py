"""Chosen groups in whole models of each family, with random weights, against the unmodified models.

They need ``pip install torch torchvision 'transformers>=5.18'``. The right results are those of the models themselves,
fed as transformers feeds them: of all patches, or with those that were not chosen hidden from attention.
"""

import itertools
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.rows import channel_rows, pixel_rows
from tests.pipeline.vlm_selections import selection_of

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("transformers", minversion="5.18", reason="needs transformers 5.18")

from foveate.pipeline.vlm import device_rows  # noqa: E402
from foveate.pipeline.vlm.prompts import prompt_of  # noqa: E402
from foveate.pipeline.vlm.tower_places import centres  # noqa: E402
from foveate.pipeline.vlm.towers import Tower  # noqa: E402
from tests.models.vision_language import BEFORE, BEHIND, IMAGE, MAKERS, model_of  # noqa: E402

ROWS, COLUMNS = 4, 6  # groups of the picture
MEAN, STD = (0.5, 0.4, 0.3), (0.25, 0.3, 0.35)
GEMMA = ("gemma4", "gemma4_e")
LINEAR = ("qwen3_5", "qwen3_5_moe")  # they have layers of linear attention
EXACT_ATTENTION = [family for family in MAKERS if family not in LINEAR + GEMMA]  # all layers see all tokens before


@pytest.fixture(scope="module", params=MAKERS)
def model(request: pytest.FixtureRequest) -> Any:
    return model_of(request.param)


def whole(seed: int = 0, merge: int = 2) -> Selection:
    """A Selection of all cells at full resolution, in groups, with random patches."""
    cells = itertools.product(range(ROWS), range(COLUMNS), range(merge), range(merge))
    side = 16 * merge
    tokens = [(0, side * c + 16 * j + 8, side * r + 16 * i + 8) for r, c, i, j in cells]
    made = selection_of(side * COLUMNS, side * ROWS, tokens)
    made.patches[:] = np.random.default_rng(seed).integers(0, 256, made.patches.shape)
    return made


def part_of(selection: Selection, groups: list[int]) -> Selection:
    """Some groups of a Selection like ``whole``, in any order."""
    each = selection.height * selection.width // 256 // (ROWS * COLUMNS)
    tokens = [each * group + part for group in groups for part in range(each)]
    made = selection_of(
        selection.width, selection.height,
        [(int(selection.lod[k]), int(selection.x[k]), int(selection.y[k])) for k in tokens],
    )  # fmt: skip
    made.patches[:] = selection.patches[tokens]
    return made


def rows_of(tower: Tower, selection: Selection, groups: Groups) -> Any:
    return tower.rows(selection.patches[groups.order], MEAN, STD)


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
    inputs = {"input_ids": prompt.ids, "position_ids": prompt.positions, "mm_encoder_outputs": outputs}
    if model.config.model_type == "gemma4":  # without a mask it takes gaps between positions for other prompts' ends
        inputs |= {"mm_token_type_ids": prompt.types, "attention_mask": torch.ones_like(prompt.ids)}
    return inputs


def ids_of(model: Any, count: int) -> list[int]:
    """The prompt of ``given``, with as many whole pictures, and what Gemma 4's processor puts around each."""
    before, behind = ([BEFORE], [BEHIND]) if model.config.model_type == "gemma4" else ([], [])
    ids = [5, 6]
    for number in range(count):
        ids += [*before, *[IMAGE] * (ROWS * COLUMNS), *behind, 20 + number, 21]
    return ids


def pixels_of_gemma(selections: list[Selection]) -> dict[str, Any]:
    """Whole pictures as its processor makes them: patches row by row, each with its column and row."""
    rows, places = [], []
    for selection in selections:
        order = np.lexsort((selection.x, selection.y))
        rows.append(pixel_rows(selection.patches[order], MEAN, STD))
        places.append(np.stack([selection.x, selection.y], 1)[order] // 16)
    made = {"pixel_values": np.stack(rows), "image_position_ids": np.stack(places).astype(np.int64)}
    return {name: torch.from_numpy(value) for name, value in made.items()}


def as_usual(model: Any, selections: list[Selection]) -> dict[str, Any]:
    """What transformers itself hands to the model, of the whole pictures."""
    given = torch.tensor([ids_of(model, len(selections))])
    if model.config.model_type == "gemma4":
        return {"input_ids": given, "mm_token_type_ids": (given == IMAGE).int()} | pixels_of_gemma(selections)
    tower = Tower(model)
    frames = [Groups.of(selection, tower.merge) for selection in selections]
    pixels = torch.cat([rows_of(tower, *each) for each in zip(selections, frames, strict=True)])
    grid = torch.tensor([[1, 2 * ROWS, 2 * COLUMNS]] * len(frames))
    inputs = {"input_ids": given, "pixel_values": pixels, "image_grid_thw": grid}
    if model.config.model_type == "video_llama_3":
        return inputs | {"image_merge_sizes": torch.tensor([2] * len(frames))}
    return inputs | {"mm_token_type_ids": (given == IMAGE).int()}


@torch.no_grad()
def test_with_all_groups_the_model_is_as_it_is(model: Any) -> None:
    selections = [whole(seed, Tower(model).merge) for seed in (1, 2)]
    expected = model(**as_usual(model, selections)).logits
    assert (model(**given(model, selections)).logits - expected).abs().max() == 0.0


@torch.no_grad()
def test_with_all_groups_it_says_the_same(model: Any) -> None:
    selections = [whole(seed, Tower(model).merge) for seed in (1, 2)]
    say = {"max_new_tokens": 24, "min_new_tokens": 24, "do_sample": False}
    usual, ours = as_usual(model, selections), given(model, selections)
    expected = model.generate(**usual, **say)[0, usual["input_ids"].shape[1] :]
    found = model.generate(**ours, **say)[0, ours["input_ids"].shape[1] :]
    assert len(expected) == 24
    assert (found == expected).all()


CHOSEN = [23, 2, 3, 9, 14, 0, 17]  # in no order


def order_in(tower: Tower, groups: Groups) -> Any:
    """In which order a tower looks at the patches: Qwen2.5's window by window, Gemma's row by row."""
    if tower.merge == 3:
        return torch.from_numpy(np.lexsort((groups.places.columns, groups.places.rows)))
    order = tower.inputs([groups], True)[1].get("window_index", torch.arange(len(groups)))
    return (order[:, None] * 4 + torch.arange(4)).ravel()


class Hiding:
    """An attention function for a tower that sees the whole picture: keys of groups that were not chosen are hidden.

    A tower calls it for one stretch of patches after another, in its own order, layer by layer.
    """

    def __init__(self, tower: Tower, groups: Groups, chosen: list[int]) -> None:
        kept = torch.zeros(len(groups), dtype=torch.bool)
        kept[chosen] = True
        self._kept = kept.repeat_interleave(tower.merge**2)[order_in(tower, groups)]
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
    visual = tower.visual
    monkeypatch.setattr(visual.config, "_attn_implementation", "hiding")
    return tower.encode(rows_of(tower, selection, groups), [groups])


@torch.no_grad()
def test_a_tower_sees_what_is_chosen_as_if_the_rest_were_hidden(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64: float32 sums of another number of terms differ by some 1e-6 by themselves."""
    at = sorted(CHOSEN)
    model.double()
    every = whole(3, Tower(model).merge)
    found = seen_by(model, part_of(every, CHOSEN), monkeypatch)
    expected = seen_by(model, every, monkeypatch, hide=at)
    model.float()
    assert (found.pooler_output[0] - expected.pooler_output[0][at]).abs().max() <= 1e-6
    layers = (getattr(each, "deepstack_features", None) or [] for each in (found, expected))
    for ours, theirs in zip(*layers, strict=True):
        assert (ours[0] - theirs[0][at]).abs().max() <= 1e-6


@torch.no_grad()
def test_a_language_model_reads_what_is_chosen_as_if_the_rest_were_masked(model: Any) -> None:
    """Frames of seven groups, of none, and of all; the whole prompt, with the others' placeholders masked."""
    if model.config.model_type not in EXACT_ATTENTION:
        pytest.skip("layers of linear attention know no mask; Gemma 4 has a test of its own")
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


@torch.no_grad()
def test_gemma_4_reads_what_is_chosen_as_if_the_rest_were_masked(model: Any) -> None:
    """Its layers with windows count the tokens that are there, and in the large models a picture's see each other.

    What each token is to see of the whole prompt is worked out here; the windows are shorter than either prompt. In
    float64, as the towers' test.
    """
    if model.config.model_type != "gemma4":
        pytest.skip("the other families have a test of their own")
    text = model.config.text_config
    selections = [part_of(whole(1, 3), CHOSEN), part_of(whole(2, 3), []), whole(3, 3)]
    model.double()
    ours = given(model, selections)
    found = model(**ours).logits[0]
    ids = torch.tensor(ids_of(model, 3))
    kept = torch.zeros(3, ROWS * COLUMNS, dtype=torch.bool)
    kept[0, CHOSEN] = kept[2] = True
    shown = ids != IMAGE
    shown[~shown] = kept.ravel()
    number = shown.cumsum(0)  # of each token among those that are there
    causal = shown & torch.ones(len(ids), len(ids), dtype=torch.bool).tril()
    own = torch.cumsum(ids == BEFORE, 0) * (ids == IMAGE)  # which picture a token is of; 0: none
    together = (own[:, None] == own) & (own > 0) & shown
    both = causal | together if text.use_bidirectional_attention == "vision" else causal
    windows = both & (number > number[:, None] - text.sliding_window)
    assert windows[shown].sum() < both[shown].sum()
    expected = model(
        input_ids=ids[None], position_ids=torch.arange(len(ids))[None],
        attention_mask={"full_attention": causal[None, None], "sliding_attention": windows[None, None]},
        mm_encoder_outputs={"image": scattered(ours["mm_encoder_outputs"]["image"], kept)},
    ).logits[0, shown]  # fmt: skip
    model.float()
    assert len(found) == len(CHOSEN) + ROWS * COLUMNS + 2 + 3 * 4
    assert (found - expected).abs().max() <= 5e-6


def scattered(outputs: Any, kept: Any) -> Any:
    """The features of chosen groups among zeros for the others."""

    def spread(features: Any) -> Any:
        found = torch.zeros(*kept.shape, features[0].shape[-1], dtype=features[0].dtype)
        found[kept] = torch.cat(features)
        return tuple(found)

    outputs.pooler_output = spread(outputs.pooler_output)
    if getattr(outputs, "deepstack_features", None) is not None:
        outputs.deepstack_features = [spread(each) for each in outputs.deepstack_features]
    return outputs


@torch.no_grad()
def test_rotary_positions_are_those_of_the_whole_grid(model: Any) -> None:
    tower = Tower(model)
    merge = tower.merge
    every, part = Groups.of(whole(0, merge), merge), Groups.of(part_of(whole(0, merge), CHOSEN), merge)
    at = torch.from_numpy(part.position)
    angles = [angles_of(tower, groups) for groups in (every, part)]
    assert (angles[0][at] - angles[1]).abs().max() == 0.0


def angles_of(tower: Tower, groups: Groups) -> Any:
    """The cosines by which a tower turns the patches of each group: [groups, patches, D]."""
    ids = tower.inputs([groups], True)[1]["position_ids"]
    if tower.merge == 3:
        inverse = order_in(tower, groups).argsort()
        found = tower.visual.encoder.rotary_emb(torch.zeros(1), ids)[0][0, inverse]
    else:
        found = tower.visual.rotary_pos_emb(torch.zeros(len(ids), 1), ids)[0]
    return found.reshape(len(groups), tower.merge**2, -1)


@torch.no_grad()
def test_coarse_groups_stand_between_fine_ones(model: Any) -> None:
    """A group of LOD 1 over the picture's upper left 2x2 groups, and the group behind: centres by hand."""
    merge = Tower(model).merge
    parts = list(itertools.product(range(merge), range(merge)))
    tokens = [(1, 32 * j + 16, 32 * i + 16) for i, j in parts]
    tokens += [(0, 32 * merge + 16 * j + 8, 16 * i + 8) for i, j in parts]
    selection = selection_of(16 * merge * COLUMNS, 16 * merge * ROWS, tokens)
    groups = Groups.of(selection, merge)
    assert groups.position.tolist() == [2, 7]  # the fine one is in row 0; the coarse one's middle is (1, 1)
    rows = centres([groups], False)[merge**2 :, 0].reshape(merge, merge)
    assert rows[:, 0].tolist() == [1, 3, 5][:merge]
    assert (rows == rows[:, :1]).all()
    logits = model(**given(model, [selection])).logits
    assert logits.shape[1] == len(ids_of(model, 1)) - ROWS * COLUMNS + 2
    assert torch.isfinite(logits).all()


@torch.no_grad()
def test_frames_are_the_same_alone_and_together(model: Any) -> None:
    """Of different sizes, which some towers fill up; in float64."""
    model.double()
    tower = Tower(model)
    selections = [part_of(whole(seed, tower.merge), chosen) for seed, chosen in enumerate((CHOSEN, [5], [], [0, 3, 8]))]
    frames = [Groups.of(selection, tower.merge) for selection in selections]
    rows = [rows_of(tower, *each) for each in zip(selections, frames, strict=True)]
    together = tower.encode(torch.cat(rows), frames).pooler_output
    assert [len(features) for features in together] == [7, 1, 0, 3]
    for number in (0, 1, 3):
        alone = tower.encode(rows[number], frames[number : number + 1]).pooler_output[0]
        assert (together[number] - alone).abs().max() <= 1e-6
    model.float()


@torch.no_grad()
def test_gemma_4_reads_its_table_between_entries() -> None:
    """A group of LOD 1 stands between cells: as if entries of its own lay there, halfway between two."""
    model = model_of("gemma4")
    tower, visual = Tower(model), model.model.vision_tower
    parts = list(itertools.product(range(3), range(3)))
    selection = selection_of(16 * 18, 16 * 12, [(1, 32 * j + 16, 32 * i + 16) for i, j in parts])
    groups = Groups.of(selection, 3)
    rows = rows_of(tower, selection, groups)
    found = tower.encode(rows, [groups]).pooler_output[0]
    table = visual.patch_embedder.position_embedding_table
    table[:, :5:2] = (table[:, :5:2] + table[:, 1:6:2]) / 2  # entries 0, 2 and 4 now hold what is at 0.5, 2.5 and 4.5
    at, padding = torch.tensor([[(2 * j, 2 * i) for i, j in parts]]), torch.zeros(1, 9, dtype=torch.bool)
    seen = visual.encoder(visual.patch_embedder(rows[None], at, padding), ~padding, at + 0.5).last_hidden_state
    pooled = (seen.mean(1) * 32**0.5 - visual.std_bias) * visual.std_scale
    assert (model.model.embed_vision(pooled) - found).abs().max() <= 1e-6


def test_a_gemma_4_without_a_tower_is_refused() -> None:
    model = model_of("gemma4")
    model.model.vision_tower = None
    with pytest.raises(ValueError, match="this Gemma 4 has no vision tower"):
        Tower(model)


def test_other_models_are_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(n_layer=1, n_embd=8, n_head=2))
    with pytest.raises(ValueError, match=r"models of type 'gpt2' do not fit; those of qwen2_vl, "):
        Tower(model)


def test_a_refusal_tells_what_the_model_is_and_what_fits() -> None:
    from foveate.pipeline.vlm.families import refusal

    said = refusal("llava", {"patch_size": 14, "image_size": 336})
    assert said is not None
    assert said.startswith("models of type 'llava' (patches of 14 pixels) do not fit; those of qwen2_vl, ")
    said = refusal("idefics9", {"patch_size": 12, "spatial_merge_size": 4})
    assert said is not None
    assert said.startswith("models of type 'idefics9' (patches of 12 pixels, merged 4x4) do not fit; those of ")
    said = refusal("gemma4", {"patch_size": 16, "pooling_kernel_size": 4})
    assert said == "models of type 'gemma4' with patches merged 4x4 do not fit; merged 2x2 and 3x3 they do"
    assert refusal("gemma4", {"pooling_kernel_size": 3}) is None
    assert refusal("qwen3_vl", {"spatial_merge_size": 2, "patch_size": [16]}) is None


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


def test_rows_are_those_of_the_processor_of_gemma_4() -> None:
    from transformers import Gemma4ImageProcessor

    made = Gemma4ImageProcessor(do_resize=False)
    picture = np.random.default_rng(0).integers(0, 256, (96, 144, 3), np.uint8)
    expected = made(images=[picture], return_tensors="np")
    assert expected["num_soft_tokens_per_image"] == [6]
    patches = picture.reshape(6, 16, 9, 16, 3).swapaxes(1, 2).reshape(-1, 16, 16, 3)
    found = pixel_rows(patches, made.image_mean, made.image_std)
    assert (found == expected["pixel_values"][0, :54]).all()


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
    before = [type(module) for module in tower.visual.modules()]
    with tower.compiled():
        compiled = [type(module).__name__ for module in tower.visual.modules()]
        assert compiled.count("OptimizedModule") == 2  # all families have two blocks here
    assert [type(module) for module in tower.visual.modules()] == before


@pytest.mark.parametrize("count", [0, 5])
def test_rows_made_on_a_device_are_the_same(count: int) -> None:
    patches = np.random.default_rng(0).integers(0, 256, (count, 16, 16, 3), np.uint8)
    found = device_rows.channel_rows(torch.from_numpy(patches), MEAN, STD, 2)
    assert found.shape == (count, 1536)
    assert np.abs(found.numpy() - channel_rows(patches, MEAN, STD, 2)).max(initial=0) <= 1e-6  # a product, rounded
    for mean, std in ((MEAN, STD), ((0.0,) * 3, (1.0,) * 3)):
        found = device_rows.pixel_rows(torch.from_numpy(patches), mean, std)
        assert found.shape == (count, 768)
        assert np.abs(found.numpy() - pixel_rows(patches, mean, std)).max(initial=0) <= 1e-6
