"""Generated clips: the things are where they are said to be."""

from itertools import islice, pairwise

import numpy as np
import pytest

from foveate.bench.scenes.moving import CUT, FADE, HEIGHT, SCENES, WIDTH


@pytest.mark.parametrize("name", [name for name in SCENES if name != "drift"])
def test_frames_have_a_size_and_are_drawn_again_the_same(name: str) -> None:
    once, again = (list(SCENES[name](3)) for _ in range(2))
    assert len(once) == 3
    for moment, other in zip(once, again, strict=True):
        assert moment.luma.shape == (HEIGHT, WIDTH)
        assert (moment.luma == other.luma).all()


@pytest.mark.parametrize("name", ["speeds", "arrivals", "occlusion"])
def test_things_are_brighter_than_what_is_around_them(name: str) -> None:
    seen = 0
    for moment in islice(SCENES[name](60), 0, None, 9):
        for box in moment.boxes:
            inside = moment.luma[box.top : box.bottom, box.left : box.right]
            assert inside.mean() > 180 > moment.luma.mean()
            seen += 1
    assert seen >= 3


def test_things_move_at_their_speeds() -> None:
    lefts = [[box.left for box in moment.boxes] for moment in SCENES["speeds"](5)]
    assert [later - now for now, later in zip(lefts[0], lefts[4], strict=True)] == [2, 8, 24, 64]


def test_a_thing_is_not_there_while_it_is_behind_the_post() -> None:
    seen = [bool(moment.boxes) for moment in SCENES["occlusion"](60)]
    assert seen[0]
    assert not seen[30]
    assert seen[59]


def test_the_cut_is_one_step_and_the_fade_many() -> None:
    def steps(name: str) -> list[float]:
        lumas = [moment.luma.astype(float) for moment in SCENES[name](CUT + FADE + 2)]
        return [float(np.abs(now - before).mean()) for before, now in pairwise(lumas)]

    at_rest = 1.6  # two noises of 1 level, rounded: 2 / sqrt(pi) = 1.13, and a little
    assert [place for place, step in enumerate(steps("cut"), 1) if step > at_rest] == [CUT]
    assert max(steps("rest")) < at_rest
    assert max(steps("fade")) < steps("cut")[CUT - 1] / 5
    fading = sum(step > at_rest - 0.3 for step in steps("fade"))
    assert fading in range(FADE - 2, FADE + 1)
