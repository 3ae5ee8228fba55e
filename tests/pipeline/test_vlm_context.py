"""Which tokens still show, against painting every pixel, and of real streams."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline import open_stream
from foveate.pipeline.selection import Selection, starts_scene
from foveate.pipeline.selection.painting import blank, paint_patches
from foveate.pipeline.vlm.context import Context, Part
from tests.pipeline.vlm_selections import selection_of

CLIPS = ("pedestrians", "bunny", "tree")


def tokens_of(rng: np.random.Generator, width: int, height: int, most: int) -> list[tuple[int, int, int]]:
    """Leaves of a random quadtree with roots of 16 << ``most`` pixels, about half of them left out, coarse to fine."""
    found = []
    squares = [(most, x, y) for y in range(0, height, 16 << most) for x in range(0, width, 16 << most)]
    while squares:
        lod, x, y = squares.pop()
        half = 8 << lod
        if x >= width or y >= height or rng.random() < 0.3:
            continue
        if lod == 0 or rng.random() < 0.4:
            found.append((lod, min(x + half, width - 1), min(y + half, height - 1)))
        else:
            squares += [(lod - 1, x + i * half, y + j * half) for i in (0, 1) for j in (0, 1)]
    return sorted(found, key=lambda token: (-token[0], token[2], token[1]))


def grouped(tokens: list[tuple[int, int, int]], merge: int) -> list[tuple[int, int, int]]:
    """Each token of tokens_of(), made of picture and group scaled by 1 / ``merge``, as a group in the picture."""
    parts = list(itertools.product(range(merge), range(merge)))
    found = []
    for lod, x, y in tokens:
        side = 16 << lod
        left, top = x // side * side * merge, y // side * side * merge
        found += [(lod, left + j * side + side // 2, top + i * side + side // 2) for i, j in parts]
    return found


def random_stream(seed: int, most: int = 6, merge: int = 1, frames: int = 20, cuts: float = 0.1) -> list[Selection]:
    rng = np.random.default_rng(seed)
    width, height = (int(side) for side in rng.integers(20, 400, 2))
    found = []
    for index in range(frames):
        tokens = tokens_of(rng, width, height, most)
        made = selection_of(width * merge, height * merge, grouped(tokens, merge))
        keyframe = "first" if index == 0 else rng.choice(["cut", "periodic", None], p=[cuts, 0.2, 0.8 - cuts])
        pixels = rng.integers(0, 256, made.patches.shape, np.uint8)
        found.append(replace(made, index=index, keyframe=keyframe, patches=pixels))
    return found


class Owners:
    """Which group each pixel of the picture shows, painted one group after the other."""

    def __init__(self, merge: int = 1) -> None:
        self.merge, self.given = merge, 0
        self.pixels: NDArray[np.int64] = np.empty((0, 0), np.int64)

    def add(self, selection: Selection) -> None:
        if starts_scene(selection.keyframe):
            self.pixels = np.full((selection.height, selection.width), -1)
        for at in range(0, len(selection), self.merge**2):
            side = 16 << int(selection.lod[at])
            top, left = int(selection.y[at]) // side * side, int(selection.x[at]) // side * side
            self.pixels[top : top + side * self.merge, left : left + side * self.merge] = self.given
            self.given += 1

    @property
    def live(self) -> list[int]:
        return [number for number in np.unique(self.pixels).tolist() if number >= 0]


@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize("seed", range(8))
def test_what_lives_is_what_some_pixel_shows(seed: int, merge: int) -> None:
    context, owners = Context(merge=merge), Owners(merge)
    lived: list[int] = []
    for selection in random_stream(seed, merge=merge):
        announced = context.replaces(selection)
        dead = context.add(selection)
        owners.add(selection)
        assert context.live.number.tolist() == owners.live
        assert dead.number.tolist() == announced.number.tolist() == sorted(set(lived) - set(owners.live))
        assert len(context) <= -(-selection.grid[0] // merge) * -(-selection.grid[1] // merge)
        lived = owners.live


def test_the_frames_and_groups_of_what_lives() -> None:
    """A token of LOD 1 over four cells, then two of these cells, then a new scene."""
    context = Context()
    context.add(selection_of(64, 32, [(1, 16, 16), (1, 48, 16)]))
    second = replace(selection_of(64, 32, [(0, 8, 8), (0, 24, 8)]), index=4, keyframe=None)
    assert len(context.add(second)) == 0
    assert [context.live.frame.tolist(), context.live.group.tolist()] == [[0, 0, 4, 4], [0, 1, 0, 1]]
    third = replace(selection_of(64, 32, [(0, 8, 24), (0, 24, 24)]), index=5, keyframe="periodic")
    assert context.add(third).number.tolist() == [0]
    cut = replace(selection_of(64, 32, []), index=6, keyframe="cut")
    assert context.replaces(cut).number.tolist() == [1, 2, 3, 4, 5]
    assert context.add(cut).frame.tolist() == [0, 4, 4, 5, 5]
    assert len(context) == 0


def picture_of(parts: list[Part], width: int, height: int) -> NDArray[np.uint8]:
    picture = blank(width, height)
    for selection, *_ in parts:
        picture = paint_patches(picture, selection.patches, selection.x, selection.y, selection.lod)
    return picture


@pytest.mark.parametrize("seed", range(8))
def test_painting_what_lives_is_painting_all(seed: int) -> None:
    """At LOD 0, where no token's picture depends on its neighbours."""
    context, seen = Context(), None
    for selection in random_stream(seed, most=0):
        context.add(selection)
        seen = selection.paint(seen)
    parts = context.unsent()
    assert sum(len(part.selection) for part in parts) == len(context)
    assert (picture_of(parts, selection.width, selection.height) == seen).all()


def test_what_was_sent_is_not_sent_again() -> None:
    context = Context()
    first, second, *rest = random_stream(1)
    context.add(first)
    context.sent()
    assert context.unsent() == []
    for selection in (second, *rest):
        context.add(selection)
    numbers = np.concatenate([part.number for part in context.unsent()])
    assert numbers.tolist() == [number for number in context.live.number.tolist() if number >= len(first)]


@pytest.mark.parametrize("merge", [1, 2])
def test_parts_hold_their_groups_alone(merge: int) -> None:
    selections = random_stream(6, most=3, merge=merge, cuts=0.0)
    context = Context(merge=merge)
    for selection in selections:
        context.add(selection)
    parts, each = context.unsent(), merge * merge
    assert len({part.selection.index for part in parts}) > 2
    for part in parts:
        groups = context.live.group[context.live.frame == part.selection.index]
        assert part.group.tolist() == groups.tolist()
        assert part.whole * each == len(selections[part.selection.index])
        tokens = (groups[:, None] * each + np.arange(each)).ravel()
        own = selections[part.selection.index]
        for name in ("x", "y", "lod", "patches"):
            assert (getattr(part.selection, name) == getattr(own, name)[tokens]).all()


def test_under_a_limit_the_least_shown_leave_first_and_the_newest_last() -> None:
    context = Context(limit=3)
    context.add(selection_of(64, 64, [(1, 16, 16), (1, 48, 16), (0, 8, 40)]))
    second = replace(selection_of(64, 64, [(0, 8, 8)]), index=1, keyframe=None)
    assert context.replaces(second).number.tolist() == [2]  # one cell; the new one as well, but it is new
    assert context.add(second).number.tolist() == [2]
    third = replace(selection_of(64, 64, [(1, 16, 48), (0, 40, 8)]), index=2, keyframe=None)
    assert context.add(third).number.tolist() == [0, 3]  # of 3 cells each, 0 is older than 1; 3 shows in one
    assert context.live.number.tolist() == [1, 4, 5]
    many = replace(selection_of(64, 64, [(0, 8 + 16 * i, 8) for i in range(4)]), index=3, keyframe=None)
    context.add(many)
    assert context.live.number.tolist() == [7, 8, 9]


@pytest.mark.parametrize("limit", [1, 5, 40])
def test_a_limit_holds_at_all_times(limit: int) -> None:
    context = Context(limit=limit)
    for selection in random_stream(5):
        context.add(selection)
        assert len(context) <= limit
        assert sum(len(part.number) for part in context.unsent()) == len(context)


@pytest.mark.parametrize("limit", [12, 40, 90])
@pytest.mark.parametrize("seed", range(4))
def test_what_a_selection_costs_besides_counts_as_well(limit: int, seed: int) -> None:
    context, left = Context(limit=limit, per_frame=5), 0
    free, lived = Context(), set[int]()
    for selection in random_stream(seed):
        context.add(selection)
        free.add(selection)
        live = context.live
        assert len(live) + 5 * len(set(live.frame.tolist())) <= limit
        assert set(live.number.tolist()) <= set(free.live.number.tolist())
        left += len(lived & set(free.live.number.tolist()) - set(live.number.tolist()))
        lived = set(live.number.tolist())
    assert context.overflow >= left


def test_of_too_many_selections_the_least_shown_leave_and_the_newest_stays() -> None:
    """Each costs 3 besides: of a limit of 12 half is for two of them. They show in 2, 4 and 1 of 8 cells."""
    context = Context(limit=12, per_frame=3)
    context.add(selection_of(64, 32, [(0, 8 + 16 * i, 8) for i in range(3)]))
    context.add(replace(selection_of(64, 32, [(1, 48, 16)]), index=1, keyframe=None))
    assert context.live.number.tolist() == [0, 1, 3]
    context.add(replace(selection_of(64, 32, [(0, 8, 24)]), index=2, keyframe=None))
    assert context.live.frame.tolist() == [1, 2]
    assert context.overflow == 2


def test_dead_patches_are_not_held() -> None:
    """However long nobody sends anything."""
    context, owners = Context(), Owners()
    for selection in random_stream(2, most=2, frames=300, cuts=0.0):
        context.add(selection)
        owners.add(selection)
        assert context.held <= 2 * len(owners.live)


def test_bad_input_is_refused_and_changes_nothing() -> None:
    context = Context(merge=2)
    context.add(selection_of(64, 64, grouped([(0, 8, 8)], 2)))
    with pytest.raises(ValueError, match="does not hold such groups"):
        context.add(replace(selection_of(64, 64, [(0, 8, 8)] * 3), keyframe=None))
    with pytest.raises(ValueError, match="frame 0 has 5 x 4 cells, and those before it 4 x 4"):
        context.add(replace(selection_of(64, 80, []), keyframe=None))
    assert context.live.number.tolist() == [0]
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        Context(0)
    with pytest.raises(ValueError, match="merge must be at least 1, got 0"):
        Context(merge=0)
    with pytest.raises(ValueError, match="per_frame must be at least 0, got -1"):
        Context(per_frame=-1)


@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize("clip", CLIPS)
def test_of_a_clip(samples: Any, clip: str, merge: int) -> None:
    """Live groups never exceed those of LOD 0, whose tokens are the cells, and are far fewer than were given."""
    context, owners = Context(merge=merge), Owners(merge)
    settings = {"allocation": {"memory": "stream", "merge": merge}, "source": {"frames": 150}}
    with open_stream(str(samples / f"{clip}.mp4"), budget=273, **settings) as stream:
        for selection in stream:
            context.add(selection)
            owners.add(selection)
            assert len(context) <= -(-selection.grid[0] // merge) * -(-selection.grid[1] // merge)
            if selection.index % 30 == 29:
                assert context.live.number.tolist() == owners.live
    assert 0 < len(context) < owners.given / 3
