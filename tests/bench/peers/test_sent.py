"""The two readers: all at once, and first in, first out."""

from collections.abc import Callable, Iterator

import numpy as np

from foveate.bench.clips.footage import Footage
from foveate.bench.peers.sent import Sent, at_constant_rate, at_once, of_mask

Make = Callable[..., Footage]


def whole_then_nothing(footage: Footage) -> Iterator[Sent]:
    """The first frame whole, from planes that are written over afterwards."""
    planes = tuple(plane.copy() for plane in footage.pictures[0].planes)
    yield of_mask(planes, np.ones(footage.grid, np.bool_))
    for plane in planes:
        plane[:] = 0
    for _ in footage.pictures[1:]:
        yield of_mask(planes, np.zeros(footage.grid, np.bool_))


def cells(planes: tuple[np.ndarray, ...]) -> list[int]:
    return planes[0][0, ::16].tolist()


def test_at_once_all_are_read_whatever_they_are(footage_of_cells: Make) -> None:
    footage = footage_of_cells(*[[[10, 20, 30]]] * 3)
    assert [(cells(shown.planes), shown.tokens) for shown in at_once(whole_then_nothing(footage), footage)] == [
        ([10, 20, 30], 3),
        ([10, 20, 30], 0),
        ([10, 20, 30], 0),
    ]


def test_at_a_constant_rate_the_rest_waits_as_it_was_when_it_was_sent(footage_of_cells: Make) -> None:
    footage = footage_of_cells(*[[[10, 20, 30]]] * 4)
    shown = at_constant_rate(whole_then_nothing(footage), footage, 1)
    assert [(cells(each.planes), each.tokens) for each in shown] == [
        ([10, 128, 128], 1),
        ([10, 20, 128], 1),
        ([10, 20, 30], 1),
        ([10, 20, 30], 0),
    ]


def test_new_tokens_wait_behind_old_ones(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[10, 20]], [[30, 40]], [[50, 60]])

    def all_cells() -> Iterator[Sent]:
        for picture in footage.pictures:
            yield of_mask(picture.planes, np.ones(footage.grid, np.bool_))

    shown = at_constant_rate(all_cells(), footage, 1)
    assert [cells(each.planes) for each in shown] == [[10, 128], [10, 20], [30, 20]]


def test_a_resized_picture_costs_its_own_tokens(footage_of_cells: Make) -> None:
    footage = footage_of_cells([[10, 20, 30, 40]])
    tokens = of_mask((), np.ones(footage.grid, np.bool_)).tokens
    sent = Sent(footage.pictures[0].planes, tokens, cost=0.5)
    assert sent.size == 2
    (shown,) = at_constant_rate([sent], footage, 2)
    assert (cells(shown.planes), shown.tokens) == ([10, 20, 30, 40], 2)
