"""Places of tokens in position tables, against resampling by Pillow, which shares no code with ours."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.batch import batch_of
from foveate.pipeline.vlm.groups import Groups
from foveate.pipeline.vlm.places import Places, table_weights
from foveate.pipeline.vlm.rows import channel_rows, pixel_rows, resampled
from tests.pipeline.test_coverage import selections
from tests.pipeline.vlm_selections import selection_of


@pytest.mark.parametrize("kernel", ["linear", "cubic"])
@pytest.mark.parametrize(("cells", "entries"), [(24, 16), (16, 16), (12, 16), (40, 7), (1, 16), (30, 1)])
def test_reading_a_table_at_every_cell_resamples_it(kernel, cells, entries):
    """Pillow resamples float images with the same two antialiased kernels; its sums are of float32."""
    table = np.random.default_rng(cells).standard_normal((1, entries)).astype(np.float32)
    filters = {"linear": Image.Resampling.BILINEAR, "cubic": Image.Resampling.BICUBIC}
    expected = np.asarray(Image.fromarray(table).resize((cells, 1), filters[kernel]))[0]
    weights = table_weights(np.arange(cells, dtype=np.float32), np.ones(cells, np.float32), cells, entries, kernel)
    assert np.abs(weights @ table[0] - expected).max() < 2e-6


@pytest.mark.parametrize("lod", [1, 2, 3])
def test_a_coarse_token_has_the_place_of_a_patch_of_the_reduced_picture(lod):
    table = np.random.default_rng(lod).standard_normal((1, 16)).astype(np.float32)
    coarse = 32 >> lod
    expected = np.asarray(Image.fromarray(table).resize((coarse, 1), Image.Resampling.BILINEAR))[0]
    centre = (np.arange(coarse, dtype=np.float32) + 0.5) * 2**lod - 0.5
    weights = table_weights(centre, np.full(coarse, 2.0**lod, np.float32), 32, 16)
    assert np.abs(weights @ table[0] - expected).max() < 2e-6


@pytest.mark.parametrize(("cells", "entries"), [(0, 4), (4, 0)])
def test_an_empty_axis_is_refused(cells, entries):
    with pytest.raises(ValueError, match="at least 1"):
        table_weights(np.zeros(1, np.float32), np.ones(1, np.float32), cells, entries)


def test_places_are_centres_in_cells_within_the_picture():
    """Cell centres lie at x / 16 - 0.5. 70x40 pixels are 5x3 cells; the LOD-1 token's centre lies beyond them."""
    places = Places.of(selection_of(70, 40, [(2, 32, 32), (0, 8, 24), (1, 80, 16)]))
    assert places.grid == (3, 5)
    assert places.rows.tolist() == [1.5, 1.0, 0.5]
    assert places.columns.tolist() == [1.5, 0.0, 4.0]
    assert places.extent.tolist() == [4, 1, 2]


def test_a_batch_is_padded_with_invalid_tokens():
    one, two = selection_of(64, 64, [(0, 8, 8)]), selection_of(64, 32, [(0, 8, 8), (0, 24, 8), (0, 40, 8)])
    batch = batch_of([one, two])
    assert batch.valid.tolist() == [[True, False, False], [True, True, True]]
    assert batch.places[0].tolist() == [[0, 0, 1, 4, 4]] * 3
    assert batch.places[1, 2].tolist() == [0, 2, 1, 2, 4]
    assert (batch.patches[0, 1:] == 0).all()
    assert (batch.patches[1, 2] == two.patches[2].reshape(-1)).all()


def test_frames_without_tokens_make_a_batch_as_well():
    assert not batch_of([selection_of(64, 64, [])]).valid.any()


@pytest.mark.parametrize("selections", [[], [selection_of(64, 64, [(0, 8, 8)], patches=False)]])
def test_a_batch_needs_selections_with_patches(selections: list[Selection]):
    with pytest.raises(ValueError, match="selection"):
        batch_of(selections)


def test_groups_stand_in_a_prompt_where_their_middle_lies():
    """A group of LOD 1 over the upper left 64x64 pixels, and a fine one to its right, in a grid of 4x6 groups."""
    tokens = [(1, x, y) for y in (16, 48) for x in (16, 48)]
    tokens += [(0, 64 + x, y) for y in (8, 24) for x in (8, 24)]
    groups = Groups.of(selection_of(192, 128, tokens), 2)
    assert groups.grid == (4, 6)
    assert groups.position.tolist() == [2, 7]  # the fine one is in row 0; the coarse one's middle is (1, 1)
    assert groups.order.tolist() == [4, 5, 6, 7, 0, 1, 2, 3]
    assert groups.places.rows.tolist() == [0, 0, 1, 1, 0.5, 0.5, 2.5, 2.5]
    assert groups.per_token(np.array([1.0, 2.0])).tolist() == [2] * 4 + [1] * 4


def test_the_middle_of_a_group_beyond_the_edge_is_moved_inside():
    """80x80 pixels are 3x3 groups of 32; one of LOD 2 covers 128x128, and its middle lies at (64, 64): group (2, 2)."""
    tokens = [(2, x, y) for y in (32, 79) for x in (32, 79)]
    groups = Groups.of(selection_of(80, 80, tokens), 2)
    assert groups.position.tolist() == [8]
    assert groups.places.rows.max() == 4


def test_groups_of_nine_stand_where_their_middle_lies():
    """A group of LOD 1 over the upper left 96x96 pixels, and a fine one to its right, in a grid of 4x6 groups of 48."""
    tokens = [(1, x, y) for y in (16, 48, 80) for x in (16, 48, 80)]
    tokens += [(0, 96 + x, y) for y in (8, 24, 40) for x in (8, 24, 40)]
    groups = Groups.of(selection_of(288, 192, tokens), 3)
    assert groups.grid == (4, 6)
    assert groups.position.tolist() == [2, 7]  # the middles are at (120, 24) and (48, 48)
    assert groups.order.tolist() == [*range(9, 18), *range(9)]
    assert groups.places.columns[9:].tolist() == [0.5, 2.5, 4.5] * 3


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(1, 900), st.integers(1, 700)),
    st.integers(1, 300),
    st.sampled_from(["frame", "stream"]),
    st.sampled_from([1, 2, 3]),
)
@example((768, 769), 144, "frame", 3)
@example((1, 1), 9, "frame", 3)
def test_what_the_engine_chooses_is_groups_of_a_model(size, budget, memory, merge):
    """Each group has a position of its own within the grid, and holds its tokens row by row, centres in the picture."""
    allocation = {"memory": memory, "merge": merge}
    (selection,) = selections(*size, budget=max(budget, merge**2), allocation=allocation)
    groups = Groups.of(selection, merge)
    assert groups.grid == (-(-size[1] // (16 * merge)), -(-size[0] // (16 * merge)))
    assert (np.diff(groups.position) > 0).all()
    assert 0 <= groups.position[0] <= groups.position[-1] < groups.grid[0] * groups.grid[1]
    assert sorted(groups.order.tolist()) == list(range(len(selection)))
    each = (-1, merge, merge)
    rows, columns = groups.places.rows.reshape(each), groups.places.columns.reshape(each)
    assert (rows == rows[:, :, :1]).all()
    assert (columns == columns[:, :1]).all()
    assert (np.diff(rows, axis=1) >= 0).all()
    assert (np.diff(columns, axis=2) >= 0).all()
    assert 0 <= rows.min() <= rows.max() <= -(-size[1] // 16) - 1
    assert 0 <= columns.min() <= columns.max() <= -(-size[0] // 16) - 1


@pytest.mark.parametrize("merge", [2, 3])
def test_tokens_that_are_no_groups_are_refused(merge: int) -> None:
    selection = selection_of(96, 96, [(0, 8, 8), (1, 16, 16), (0, 24, 8), (0, 40, 8)])
    with pytest.raises(ValueError, match=r'open the stream with allocation=\{"merge": '):
        Groups.of(selection, merge)


def test_rows_are_channel_by_channel_and_frame_by_frame():
    patches = np.arange(2 * 2 * 2 * 3, dtype=np.uint8).reshape(2, 2, 2, 3)
    rows = channel_rows(patches, (0, 0, 0), (1, 1, 1), frames=2) * 255
    assert np.rint(rows[0]).tolist() == [0, 3, 6, 9] * 2 + [1, 4, 7, 10] * 2 + [2, 5, 8, 11] * 2
    assert np.rint(pixel_rows(patches, (0, 0, 0), (1, 1, 1)) * 255)[1].tolist() == list(range(12, 24))
    assert channel_rows(patches[:0], (0, 0, 0), (1, 1, 1)).shape == (0, 12)
    assert np.abs(channel_rows(patches, (0.5, 0.4, 0.3), (0.25, 0.3, 0.35))[0, 0] + 2) < 1e-6  # (0 - 0.5) / 0.25


def test_patches_are_resampled_by_themselves():
    patches = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8)
    assert resampled(patches, 16) is patches
    smaller = resampled(patches, 14)
    assert smaller.shape == (3, 14, 14, 3)
    assert np.abs(smaller.mean(axis=(1, 2)) - patches.mean(axis=(1, 2))).max() < 0.6  # rounding, of means of areas
    assert resampled(patches[:0], 14).shape == (0, 14, 14, 3)
