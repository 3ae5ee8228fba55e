"""Trees whose tokens may be wider than high, higher than wide, or on cells of other sizes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.peers.between import FAMILIES, Family, between, shapes, trees
from foveate.bench.peers.methods import ours
from foveate.bench.peers.sent import at_once
from foveate.bench.reader.painting import mean_square

Make = Callable[..., Footage]


def painted(family: Family, footage: Footage, budget: int, stream: bool = False) -> tuple[list[np.ndarray], list[int]]:
    """The luma that a reader holds after each frame, and the tokens."""
    shown = [(each.planes[0].copy(), each.tokens) for each in at_once(trees(family, stream, footage, budget), footage)]
    return [luma for luma, _ in shown], [tokens for _, tokens in shown]


def test_shapes_by_the_ratio_of_their_strides() -> None:
    assert shapes(0, 0) == {(lod, lod) for lod in range(5)}
    assert (2, 0) in shapes(0, 2)
    assert not {(0, 2), (3, 0)} & shapes(0, 2)
    assert len(shapes(-2, 2)) == 5 + 2 * 4 + 2 * 3


@pytest.mark.parametrize(("across", "family"), [(False, "wide"), (True, "high")])
def test_stripes_of_a_pixel_need_a_quarter_of_the_tokens(across: bool, family: str, footage_of: Make) -> None:
    """256 cells, striped by pixel: a token that is 4 cells long and 1 thick shows 4 of them as they are."""
    luma = np.tile(np.arange(256) % 2 * 200, (256, 1)).astype(np.uint8)
    footage = footage_of(luma if across else luma.T.copy())
    (shown,), (tokens,) = painted(FAMILIES[family], footage, 64)
    assert tokens == 64
    assert np.array_equal(shown, footage.pictures[0].luma)
    (squares,), _ = painted(FAMILIES["squares"], footage, 64)
    assert mean_square(squares, footage.pictures[0].luma) == pytest.approx(100**2, rel=0.01)


def test_a_plain_picture_takes_one_token_and_then_none_with_stream_memory(footage_of: Make) -> None:
    footage = footage_of(*[np.full((256, 256), 90, np.uint8)] * 2)
    for family in FAMILIES.values():
        assert painted(family, footage, 50)[1] == [1, 1]
        assert painted(family, footage, 50, stream=True)[1] == [1, 0]


def test_larger_cells_are_taken_where_they_leave_less(footage_of: Make) -> None:
    """Blocks of 6 pixels, 384 x 384 in all, for 256 tokens: as many cells of 24 pixels cover it; LOD 0 does not."""
    noise = np.random.default_rng(3).integers(0, 255, (64, 64)).astype(np.uint8)
    luma = noise.repeat(6, axis=0).repeat(6, axis=1)
    footage = footage_of(luma)
    lefts = [
        mean_square(painted(family, footage, 256)[0][0], luma)
        for family in (FAMILIES["squares"], FAMILIES["cells of 16 to 28 pixels"])
    ]
    assert lefts[1] < 0.8 * lefts[0]


def test_squares_come_as_close_as_the_product_and_more_shapes_closer(tiny_clip: Path) -> None:
    footage = read_footage(tiny_clip, 3)
    methods = {name: method for name, method in between().items() if name.endswith("frame")}
    methods["product"] = lambda footage, budget: ours({"allocation": {"memory": "frame"}}, footage, budget)
    left = {
        name: [
            sum(mean_square(mine, true) for mine, true in zip(shown.planes, picture.planes, strict=True))
            for shown, picture in zip(at_once(method(footage, 8), footage), footage.pictures, strict=True)
        ]
        for name, method in methods.items()
    }
    assert np.mean(left["tree, squares, frame"]) <= 1.1 * np.mean(left["product"])
    assert np.mean(left["tree, either, frame"]) <= np.mean(left["tree, squares, frame"])
