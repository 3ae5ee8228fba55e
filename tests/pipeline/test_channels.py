"""The table of channels: complete, in order, and true about how far a change spreads."""

import numpy as np
import pytest

from foveate.pipeline.cascade.clusters import boundary, cluster
from foveate.pipeline.channels import BY_NAME, CHANNELS, OPTIONAL_CHANNELS
from foveate.pipeline.cpu.pyramid import pyramid
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings

SPEC40 = (
    "red green blue edges edges_inverted highpass lowpass motion saliency x y eccentricity cluster_id cluster_distance "
    "cluster_size prev_relevance prev_saliency fixation "
    + " ".join(f"clip{index}" for index in range(16))
    + " edge_distance prev_attention attention gaze boundary text"
).split()


def test_forty_channels_in_the_order_of_the_default_layout():
    assert [channel.name for channel in CHANNELS] == SPEC40
    assert len(BY_NAME) == len(CHANNELS) + len(OPTIONAL_CHANNELS)
    assert all(set(channel.depends) <= {*BY_NAME, "luma", "chroma", "flow"} for channel in BY_NAME.values())
    assert {name for name, channel in BY_NAME.items() if channel.reduce == "nearest"} == {"cluster_id", "cluster_size"}


@pytest.mark.parametrize("name", ["edges", "edges_inverted", "highpass", "lowpass", "saliency"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_change_spreads_no_farther_than_the_table_says(name, level):
    """A block on the lattice of the coarsest level involved is altered; only cells within reach may follow."""
    rng = np.random.default_rng(0)
    before = rng.integers(60, 180, (160, 160), dtype=np.uint8)
    after = before.copy()
    after[64:80, 64:80] = rng.integers(0, 256, (16, 16))
    grids = []
    for luma in (before, after):
        frame = Frame(0, 0.0, luma, None, Colour("bt601", True))
        plain = Settings(analysis_level=level)
        (state,) = pyramid(upload([frame], plain.change), plan_stream(plain), 1)
        grids.append(state.grid[name])
    rows, columns = np.nonzero(grids[0] != grids[1])
    reach = BY_NAME[name].reach
    assert len(rows)
    assert rows.min() * 16 >= 64 - reach - 15  # a cell counts where any pixel of it follows
    assert rows.max() * 16 <= 79 + reach
    assert columns.min() * 16 >= 64 - reach - 15
    assert columns.max() * 16 <= 79 + reach


def test_clusters_keep_to_colours_and_say_how_large_they_are():
    rgb = np.zeros((30, 40, 3), np.uint8)
    rgb[:, :20] = (200, 30, 30)
    rgb[:, 20:] = (30, 30, 200)
    label, distance, size = cluster(rgb)
    assert set(np.unique(label)) <= set(range(50))
    assert not set(np.unique(label[:, :20])) & set(np.unique(label[:, 20:]))
    assert ((distance >= 0) & (distance <= 1)).all()
    for one in np.unique(label):
        assert size[label == one] == pytest.approx((label == one).mean())
        row, column = np.nonzero(label == one)
        away = np.hypot(row - row.mean(), column - column.mean())
        assert distance[label == one] == pytest.approx(away / 25, abs=1e-4)  # half the diagonal of 30x40 cells
    edge = boundary(label)
    assert (edge[:, 19:21] == 1).all()
    assert set(np.unique(edge)) == {0, 1}


def test_one_cell_is_one_cluster():
    label, distance, size = cluster(np.full((1, 1, 3), 9, np.uint8))
    assert (label, distance, size) == (0, 0, 1)
    assert boundary(label) == 0
