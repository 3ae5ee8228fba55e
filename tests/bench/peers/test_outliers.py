"""STC and VidCom2 on cells of which the odd one out is plain to see."""

from collections.abc import Callable

import numpy as np

from foveate.bench.clips.footage import Footage
from foveate.bench.peers.cells import cell_features
from foveate.bench.peers.outliers import stc, vidcom2

Make = Callable[..., Footage]


def cells(masks: list[np.ndarray]) -> list[list[list[int]]]:
    return [mask.astype(int).tolist() for mask in masks]


def striped(*odd: int) -> np.ndarray:
    """Luma of five cells, uint8[16, 80]: the ``odd`` ones have a bright upper half."""
    luma = np.full((16, 80), 90, np.uint8)
    for place in odd:
        luma[:8, 16 * place : 16 * place + 16] = 250
    return luma


def test_features_are_means_of_parts(footage_of_cells: Make) -> None:
    (picture,) = footage_of_cells([[10, 200], [30, 40]]).pictures
    features = cell_features(picture)
    assert features.shape == (2, 2, 48)
    np.testing.assert_allclose(features[0, 1], 200)


def test_both_take_the_odd_one_out(footage_of: Make) -> None:
    # Half of the features are dropped, those that vary most: the upper parts. Left is the direction of the lower ones,
    # in which a cell that is bright there stands out.
    luma = striped()
    luma[8:, 32:40] = 250
    luma[:8] = np.arange(80, dtype=np.uint8) * 3
    assert cells(stc(footage_of(luma, luma), 1)) == [[[0, 0, 1, 0, 0]]] * 2
    assert cells(vidcom2(footage_of(luma, luma), 1)) == [[[0, 0, 1, 0, 0]]] * 2


def test_vidcom2_gives_more_to_the_frame_unlike_the_others(footage_of: Make) -> None:
    # Seven frames are plain. The eighth varies in its lower half, less than noise in the upper halves of all.
    noise = np.random.default_rng(0).integers(0, 255, (8, 8, 80)).astype(np.uint8)
    lumas = [np.vstack([top, np.full((8, 80), 90, np.uint8)]) for top in noise]
    lumas[5][8:, ::8] = 140
    counts = [int(mask.sum()) for mask in vidcom2(footage_of(*lumas), 2)]
    assert counts[5] > max(counts[:5] + counts[6:])
    assert min(counts) >= 1
