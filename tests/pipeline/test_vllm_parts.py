"""What the plugin of vLLM is made from, without vLLM: fields, positions, and what a tower is told."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.vllm.checks import frames_of
from foveate.pipeline.vlm.vllm.positions import Part, whole_prompt
from foveate.pipeline.vlm.vllm.request import PATCHES, image_data
from tests.pipeline.vlm_selections import selection_of

WIDTH, HEIGHT = 192, 128
FINE = [(0, 32 * column + x, 64 + y) for column in (4, 1) for y in (8, 24) for x in (8, 24)]
COARSE = [(1, x, y) for y in (16, 48) for x in (16, 48)]
WHOLE = [
    (0, 32 * column + x, 32 * row + y) for row in range(4) for column in range(6) for y in (8, 24) for x in (8, 24)
]


def test_a_prompt_of_whole_pictures_knows_what_was_there() -> None:
    """Text, three of six groups, a video of three tokens, all of two groups, text."""
    tokens = [1, 2, 9, 9, 9, 3, 8, 4, 8, 9, 9, 5]
    parts = [Part(2, np.array([0, 2, 5]), 6), Part(6), Part(9, np.array([0, 1]), 2)]
    whole = whole_prompt(tokens, parts)
    assert whole.tokens == [1, 2, 9, 9, 9, 9, 9, 9, 3, 8, 4, 8, 9, 9, 5]
    assert whole.kept.tolist() == [True] * 3 + [False, True, False, False] + [True] * 8
    assert whole.offsets == [2, 9, 12]
    assert [token for token, kept in zip(whole.tokens, whole.kept, strict=True) if kept] == tokens


def test_a_prompt_without_pictures_stays_as_it_is() -> None:
    whole = whole_prompt([1, 2], [])
    assert (whole.tokens, whole.kept.tolist(), whole.offsets) == ([1, 2], [True, True], [])


def test_fields_bring_the_groups_to_the_engine() -> None:
    pytest.importorskip("torch", reason="needs torch")
    from foveate.pipeline.vlm.vllm.fields import COUNT, GRID, groups_of, tensors_of

    selections = [selection_of(WIDTH, HEIGHT, COARSE + FINE), selection_of(70, 150, WHOLE[:4])]
    frames = frames_of(image_data(selections), 2, 1000)
    fields = tensors_of(frames, 16)
    assert fields[COUNT].tolist() == [3, 1]
    assert fields[GRID].tolist() == [[1, 8, 12], [1, 10, 6]]
    assert (fields[PATCHES][:4].numpy() == selections[0].patches[:4]).all()  # the coarse group comes first
    assert (fields[PATCHES][4:8].numpy() == selections[0].patches[8:12]).all()  # then the one on the left
    for found, selection in zip(groups_of(fields, 2), selections, strict=True):
        expected = Groups.of(selection, 2)
        assert found.grid == expected.grid
        assert (found.position == expected.position).all()
        assert (found.places.rows == expected.places.rows).all()
        assert (found.places.columns == expected.places.columns).all()


def test_fields_hold_patches_of_the_models_size() -> None:
    """Those of one colour keep it."""
    pytest.importorskip("torch", reason="needs torch")
    from foveate.pipeline.vlm.vllm.fields import tensors_of

    selection = selection_of(WIDTH, HEIGHT, FINE)
    selection.patches[:] = (10, 20, 30)
    found = tensors_of(frames_of(image_data([selection]), 2, 1000), 14)[PATCHES]
    assert found.shape == (8, 14, 14, 3)
    assert (found.numpy() == (10, 20, 30)).all()


class Tower:
    """As much of a tower of vLLM as tells its blocks about places: of one column of groups."""

    num_grid_per_side, window_size, patch_size = 7, 64, 16

    def __init__(self, torch: Any, windows: bool) -> None:
        self._torch, self._windows = torch, windows
        self.pos_embed = SimpleNamespace(weight=torch.randn(49, 8, generator=torch.Generator().manual_seed(1)))
        self.rotary_pos_emb = SimpleNamespace(rotary_dim=4, base=10000.0)

    def prepare_encoder_metadata(self, grids: list[list[int]]) -> dict[str, Any]:
        ends = np.cumsum([0] + [down * across for _, down, across in grids]).tolist()
        count, zeros = ends[-1], self._torch.zeros
        found = {"rotary_pos_emb_cos": zeros(count, 4), "rotary_pos_emb_sin": zeros(count, 4), "cu_seqlens": ends}
        if not self._windows:
            return found | {"pos_embeds": zeros(count, 8), "max_seqlen": max(np.diff(ends))}
        index = zeros(count // 4, dtype=self._torch.int64)
        return found | {
            "window_index": index, "reverse_indices": index, "max_seqlen_full": max(np.diff(ends)),
            "sequence_lengths_full": None,
        }  # fmt: skip


def told(windows: bool, tokens: list[tuple[int, int, int]]) -> tuple[Any, dict[str, Any]]:
    torch = pytest.importorskip("torch", reason="needs torch")
    from foveate.pipeline.vlm.vllm.tower import metadata

    tower = Tower(torch, windows)
    return tower, metadata(tower, [Groups.of(selection_of(WIDTH, HEIGHT, tokens), 2)])


def test_a_tower_reads_its_table_and_turns_at_the_true_places() -> None:
    """Against the table spread over the picture's 8 x 12 cells by torch, corners on corners, and angles by hand."""
    tower, found = told(False, FINE)
    torch = tower._torch
    table = tower.pos_embed.weight.reshape(7, 7, 8).permute(2, 0, 1)[None]
    spread = torch.nn.functional.interpolate(table, (8, 12), mode="bilinear", align_corners=True)[0]
    rows = [4, 4, 5, 5] * 2  # the group in column 1 first
    columns = [2, 3, 2, 3, 8, 9, 8, 9]
    assert (found["pos_embeds"] - spread[:, rows, columns].T).abs().max() <= 1e-6  # float32 sums in another order
    angles = torch.tensor([[row, row / 100, column, column / 100] for row, column in zip(rows, columns, strict=True)])
    assert (found["rotary_pos_emb_cos"] - angles.cos()).abs().max() <= 1e-6
    assert (found["rotary_pos_emb_sin"] - angles.sin()).abs().max() <= 1e-6
    assert found["cu_seqlens"] == [0, 8]


def test_a_coarse_token_turns_between_the_cells() -> None:
    _, found = told(False, COARSE)  # centres at 16 and 48 pixels: 0.5 and 2.5 cells
    assert np.allclose(found["rotary_pos_emb_sin"][:, 0], np.sin([0.5, 0.5, 2.5, 2.5]), atol=1e-6)
    assert np.allclose(found["rotary_pos_emb_sin"][:, 2], np.sin([0.5, 2.5, 0.5, 2.5]), atol=1e-6)


def test_groups_attend_within_their_windows() -> None:
    """Windows of 2 x 2 groups. By rows: the coarse group (1, 1), then (2, 1), (2, 4), (2, 5) and (3, 4)."""
    right = [(0, 32 * column + x, 32 * row + y) for row, column in ((2, 5), (3, 4)) for y in (8, 24) for x in (8, 24)]
    _, found = told(True, COARSE + FINE + right)
    assert found["window_index"].tolist() == [0, 1, 2, 3, 4]
    assert found["cu_window_seqlens"] == [0, 4, 8, 20]
    assert (found["max_seqlen_window"], found["max_seqlen_full"]) == (12, 20)
    assert found["cu_seqlens"] == [0, 20]


def test_groups_are_put_in_the_order_of_windows_and_back() -> None:
    """Of (0, 0), (0, 2), (1, 1) and (1, 3) the first and third share a window; rotary positions follow."""
    tokens = [
        (0, 32 * column + x, 32 * row + y)
        for row, column in ((0, 0), (0, 2), (1, 1), (1, 3))
        for y in (8, 24)
        for x in (8, 24)
    ]
    _, found = told(True, tokens)
    assert found["window_index"].tolist() == [0, 2, 1, 3]
    assert found["reverse_indices"].tolist() == [0, 2, 1, 3]
    assert found["cu_window_seqlens"] == [0, 8, 16]
    rows = [0, 0, 1, 1, 2, 2, 3, 3, 0, 0, 1, 1, 2, 2, 3, 3]
    assert np.allclose(found["rotary_pos_emb_sin"][:, 0], np.sin(rows), atol=1e-6)


@pytest.mark.parametrize("normalises", [False, True])
def test_a_tower_that_normalises_gets_values_as_they_are(normalises: bool) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from foveate.pipeline.vlm.vllm.tower import encode

    class Whole(Tower):
        dtype = torch.float32
        patch_embed = SimpleNamespace(temporal_patch_size=2)
        input_norm = SimpleNamespace(input_dtype=torch.uint8 if normalises else None)

        def __call__(self, rows: Any, grid: Any, encoder_metadata: Any) -> Any:
            assert grid == [[1, 4, 2], [1, 2, 2]]
            return rows.reshape(3, -1)

    frames = [Groups.of(selection_of(WIDTH, HEIGHT, FINE[start:]), 2) for start in (0, 4)]
    patches = torch.full((12, 16, 16, 3), 102, dtype=torch.uint8)  # 0.4 of 255
    found = encode(Whole(torch, False), patches, frames, (0.5, 0.4, 0.2), (0.25, 0.3, 0.5))
    assert [len(each) for each in found] == [2, 1]
    row = found[1][0, : 3 * 2 * 256].reshape(3, 512)
    expected = [102.0, 102.0, 102.0] if normalises else [-0.4, 0.0, 0.4]
    assert (row - torch.tensor(expected)[:, None]).abs().max() <= 1e-6
