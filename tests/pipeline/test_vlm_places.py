"""Places of tokens in position tables, against resampling by Pillow, which shares no code with ours."""

import numpy as np
import pytest
from PIL import Image

from foveate.pipeline.selection import Selection
from foveate.pipeline.vlm.batch import batch_of
from foveate.pipeline.vlm.places import Places, table_weights
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
