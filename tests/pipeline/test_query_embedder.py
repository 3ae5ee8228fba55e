"""The attributes encoder's embedding channels: made where they are read, and then as if they had been all along."""

import numpy as np
import pytest

from foveate.pipeline.attributes.embedder import AttributesEmbedder
from foveate.pipeline.attributes.vocabulary import LARGEST, MOVING, SMALLEST, TEXT
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.encoder import EmbedderInput

GEOMETRY = Geometry(320, 160)
EVERYTHING = frozenset(range(16))


def views(count):
    """A thing that comes, rests and goes on, a cut, and pauses: of each frame a function of what is wanted."""
    random = np.random.default_rng(1)
    grid = {f"clip{index}": np.zeros(GEOMETRY.grid, np.float32) for index in range(12)}
    grid |= {name: np.zeros(GEOMETRY.grid, np.float32) for name in ("text", "frame_difference", "foreground")}
    for index in range(count):
        changed = np.zeros(GEOMETRY.grid, np.bool_)
        if index % 7 < 4:
            changed[2:8, 2 + index % 5 : 8 + index % 5] = True
        grid = {name: np.where(changed, random.random(GEOMETRY.grid), values) for name, values in grid.items()}
        grid = {name: values.astype(np.float32) for name, values in grid.items()}
        if index < 5:
            grid["foreground"][:] = -1
        dx = np.where(changed, np.float32(0.4), np.float32(0))
        flow = Flow(dx, np.zeros_like(dx), np.ones_like(dx)) if changed.any() else None
        keyframe = {0: "first", 12: "cut", 20: "periodic"}.get(index)
        maps = dict(grid)
        yield lambda wanted, k=keyframe, c=changed, f=flow, g=maps: EmbedderInput(None, GEOMETRY, k, c, f, c, g, wanted)


@pytest.mark.parametrize("then", [EVERYTHING, {MOVING}, {SMALLEST}, {3, TEXT}, {LARGEST, MOVING}])
@pytest.mark.parametrize("before", [frozenset(), frozenset({3}), frozenset({SMALLEST})])
def test_what_is_wanted_later_is_what_was_there_all_along(before, then):
    """Also on frames without a change, and wanted by turns."""
    for first in (4, 6, 9, 13, 22, 26):
        always, later = AttributesEmbedder(GEOMETRY), AttributesEmbedder(GEOMETRY)
        for index, view in enumerate(views(30)):
            wanted = frozenset(then) if index >= first and index % 5 else before
            expected, found = always.update(view(EVERYTHING)), later.update(view(wanted))
            assert always.settled == later.settled
            for channel in wanted:
                np.testing.assert_array_equal(found.coefficients[channel], expected.coefficients[channel])


def test_no_regions_are_made_for_a_colour(monkeypatch):
    def never(*_):
        raise AssertionError("no size and no motion is asked for")

    monkeypatch.setattr("foveate.pipeline.attributes.embedder.regions", never)
    embedder = AttributesEmbedder(GEOMETRY)
    for view in views(6):
        embedder.update(view(frozenset({3, TEXT})))
    with pytest.raises(AssertionError, match="no size"):
        embedder.update(view(frozenset({SMALLEST})))
