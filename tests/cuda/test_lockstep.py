"""The order in which the CUDA engine unpacks frames, without a card: at once in lockstep, or one frame behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from foveate.cuda.engine import _at_once, _unpacked


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def arriving(told: list[str]) -> Callable[[int], Iterator[Any]]:
    """Frames whose session tells what is done to them."""

    def finish(arrived: Any) -> str:
        told.append(f"unpack {arrived.slot}")
        return f"step {arrived.slot}"

    def frames(count: int) -> Iterator[Any]:
        session = SimpleNamespace(finish=finish, forget_before=lambda: told.append("forget"))
        for number in range(count):
            told.append(f"take {number}")
            yield SimpleNamespace(session=session, slot=number)

    return frames


def test_in_lockstep_a_frame_is_unpacked_before_the_next_one_is_taken(arriving: Any, told: list[str]) -> None:
    steps = _at_once(arriving(2))
    assert next(steps) == "step 0"
    assert told == ["take 0", "unpack 0"]
    assert list(steps) == ["step 1"]
    assert told == ["take 0", "unpack 0", "forget", "take 1", "unpack 1", "forget"]


def test_else_one_is_at_work_while_the_one_before_is_unpacked(arriving: Any, told: list[str]) -> None:
    assert list(_unpacked(arriving(2))) == ["step 0", "step 1"]
    assert told == ["take 0", "take 1", "unpack 0", "unpack 1"]
