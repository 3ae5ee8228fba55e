"""What the Cascade's wrappers work out on the host: needs no GPU."""

import pytest

from foveate.cuda.cascade.layout import grid_of, units_of
from foveate.cuda.cascade.rate_distortion import units_inside
from foveate.pipeline.geometry import Geometry


@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (33, 40), (290, 160), (1920, 1080), (3840, 2160)])
def test_units_inside_the_picture(width: int, height: int, merge: int) -> None:
    """Every unit with a cell inside is counted once, under some node of level 1."""
    geometry = Geometry(width, height)
    grid = grid_of(geometry, merge)
    inside = geometry.inside[::merge, ::merge]  # a group lies inside where its first cell does
    units = units_inside(grid)
    assert units.sum() == inside.sum()
    assert len(units) == units_of(grid) // 4
    # The first node covers the units (0, 0) to (1, 1); the second one lies to its right.
    assert units[0] == inside[:2, :2].sum()
    assert units[1] == inside[:2, 2:4].sum()
    assert units[2] == inside[2:4, :2].sum()
