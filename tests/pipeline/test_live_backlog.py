"""The queue of live pictures: bursts are kept, a standing backlog is dropped."""

from foveate.pipeline.bounded_queue import END
from foveate.pipeline.live.backlog import Backlog
from foveate.pipeline.live.status import FrameCounts

SMALL, LARGE = 500_000, 40 << 20  # bytes of a picture


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_backlog(size: int | None = SMALL) -> tuple[Clock, FrameCounts, Backlog]:
    """An empty queue for pictures of so many bytes, None: not told yet; its clock, and what it counts."""
    clock = Clock()
    counts = FrameCounts(clock)
    queue = Backlog(counts)
    if size is not None:
        queue.allow(size)
    return clock, counts, queue


def test_a_burst_that_is_caught_up_with_loses_nothing() -> None:
    clock, counts, queue = a_backlog()
    got = []
    for number in range(30):  # all at once: the reader was busy
        queue.put(number)
    for number in range(30, 80):
        clock.now += 0.04  # five are taken in the time in which one comes
        got += [queue.get() for _ in range(min(5, number - len(got)))]
        queue.put(number)
    assert got == list(range(len(got)))
    assert len(got) > 70
    assert counts.dropped == 0


def test_a_reader_who_is_too_slow_gets_what_is_fresh() -> None:
    """A picture each 40 ms, taken every 200 ms: for good, a picture has waited for at most 3 of 40 ms."""
    clock, counts, queue = a_backlog()
    ages = []
    for number in range(500):
        queue.put((number, clock.now))
        clock.now += 0.04
        if number % 5 == 4:
            ages.append(clock.now - queue.get()[1])
    assert max(ages) <= 0.35 + 0.04 + 1e-9  # while it may still have been a burst
    assert max(ages[6:]) <= 3 * 0.04 + 1e-9
    assert counts.dropped == 500 - len(ages) - 2  # two wait


def test_one_who_is_barely_quick_enough_loses_nothing() -> None:
    """Nine at once, then one every 40 ms, of which each is taken after 25 ms: it takes 0.6 s until none waits."""
    clock, counts, queue = a_backlog()
    for number in range(9):
        queue.put(number)
    got = []
    for step in range(5, 700, 5):  # milliseconds
        clock.now = 100.0 + step / 1000
        if step % 25 == 0 and len(got) < 9 + (step - 1) // 40:
            got.append(queue.get())
        if step % 40 == 0:
            queue.put(8 + step // 40)
    assert got == list(range(len(got)))
    assert len(got) == 9 + 699 // 40 - 1
    assert counts.dropped == 0


def test_one_who_caught_up_has_patience_again() -> None:
    clock, counts, queue = a_backlog()
    queue.put(0)
    clock.now += 5.0  # nothing was taken
    for number in range(1, 6):
        queue.put(number)
    assert counts.dropped == 3
    assert [queue.get() for _ in range(3)] == [3, 4, 5]
    for number in range(6, 16):
        queue.put(number)
    assert counts.dropped == 3


def test_large_pictures_are_few() -> None:
    _, counts, queue = a_backlog(LARGE)
    for number in range(10):
        queue.put(number)
    assert counts.dropped == 7


def test_what_waited_for_too_long_is_not_handed_on() -> None:
    """Nothing comes and nothing is taken for 5 s; the latest has waited as long, but there is no newer one."""
    clock, counts, queue = a_backlog()
    for number in range(3):
        queue.put(number)
        clock.now += 0.04
    clock.now += 5.0
    assert queue.get() == 2
    assert counts.dropped == 2


def test_a_fresh_one_is_handed_on_in_place_of_those_that_waited_for_too_long() -> None:
    clock, counts, queue = a_backlog()
    queue.put("old")
    queue.put("old, too")
    clock.now += 1.2
    queue.put("fresh")
    queue.put("fresher")
    assert [queue.get(), queue.get()] == ["fresh", "fresher"]
    assert counts.dropped == 2


def test_a_wait_within_the_patience_loses_nothing() -> None:
    clock, counts, queue = a_backlog()
    queue.put(0)
    queue.put(1)
    clock.now += 0.99
    assert [queue.get(), queue.get()] == [0, 1]
    assert counts.dropped == 0


def test_the_last_one_before_the_end_is_handed_on_however_old() -> None:
    clock, counts, queue = a_backlog(None)
    queue.put("old")
    queue.put("last")
    queue.close()
    clock.now += 5.0
    assert queue.get() == "last"
    assert queue.get() is END
    assert counts.dropped == 1


def test_of_a_source_that_ends_nothing_is_too_old() -> None:
    clock, counts, queue = a_backlog()
    queue.keep_all()
    for number in range(5):
        queue.put(number)
    clock.now += 60.0
    assert [queue.get() for _ in range(5)] == list(range(5))
    assert (counts.dropped, counts.skipped) == (0, 0)


def test_what_waited_for_too_long_because_of_a_pause_is_no_loss() -> None:
    clock, counts, queue = a_backlog(None)
    counts.pause()
    queue.put("before")
    clock.now += 30.0
    counts.resume()
    clock.now += 0.04
    queue.put("after")
    assert queue.get() == "after"
    assert (counts.dropped, counts.skipped) == (0, 1)


def test_what_nobody_took_because_of_a_pause_is_no_loss() -> None:
    """A picture each 40 ms for 10 s, of which none is taken; then all are taken."""
    clock, counts, queue = a_backlog()
    counts.pause()
    for number in range(250):
        queue.put(number)
        clock.now += 0.04
    assert (counts.dropped, counts.skipped) == (0, 247)
    counts.resume()
    got = [queue.get() for _ in range(3)]
    for number in range(250, 300):
        clock.now += 0.04
        queue.put(number)
        got.append(queue.get())
    assert got == list(range(247, 300))
    assert (counts.dropped, counts.skipped) == (0, 247)


def test_a_reader_who_is_too_slow_after_a_pause_is_told_so() -> None:
    clock, counts, queue = a_backlog(None)
    counts.pause()
    queue.put(0)
    clock.now += 5.0
    counts.resume()
    for number in range(1, 10):
        clock.now += 0.04
        queue.put(number)
    assert (counts.dropped, counts.skipped) == (6, 1)
