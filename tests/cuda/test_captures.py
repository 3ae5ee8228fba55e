"""Captures and the calls that would spoil them keep off each other; the calls do not wait for their like."""

import threading
import time

import pytest

from foveate.cuda.driver.graph import BusyError, Captures

LIMIT = 10.0  # seconds in which what can go on does


def begin(*bodies: object) -> list[threading.Thread]:
    threads = [threading.Thread(target=body, daemon=True) for body in bodies]  # type: ignore[arg-type]
    for thread in threads:
        thread.start()
    return threads


def test_calls_do_not_wait_for_each_other() -> None:
    captures, together = Captures(), threading.Barrier(3)

    def call() -> None:
        with captures.kept_off():
            together.wait(LIMIT)  # all three are inside

    for thread in begin(call, call, call):
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert not together.broken


def test_a_capture_waits_for_calls_and_further_calls_wait_for_it() -> None:
    captures, inside, leave = Captures(), threading.Event(), threading.Event()
    order: list[str] = []

    def call() -> None:
        with captures.kept_off():
            inside.set()
            leave.wait(LIMIT)
            order.append("call")

    def capture() -> None:
        with captures.alone(LIMIT):
            order.append("capture")

    def later() -> None:
        with captures.kept_off():
            order.append("later call")

    threads = begin(call)
    assert inside.wait(LIMIT)
    threads += begin(capture)
    limit = time.monotonic() + LIMIT
    while not captures.waiting:
        assert time.monotonic() < limit
        time.sleep(0.001)
    threads += begin(later)
    time.sleep(0.02)
    assert order == []
    leave.set()
    for thread in threads:
        thread.join(LIMIT)
    assert order == ["call", "capture", "later call"]


def test_one_captures_at_a_time_also_after_an_error() -> None:
    captures, most, now = Captures(), [0], [0]

    def capture() -> None:
        for number in range(200):
            try:
                with captures.alone(LIMIT):
                    now[0] += 1
                    most[0] = max(most[0], now[0])
                    now[0] -= 1
                    if number % 3 == 0:
                        raise LookupError
            except LookupError:
                continue

    for thread in begin(capture, capture, capture):
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert most == [1]
    with captures.kept_off():
        pass


def test_a_capture_does_not_wait_for_long_calls_and_then_lets_others_begin() -> None:
    captures, inside, leave = Captures(), threading.Event(), threading.Event()

    def call() -> None:
        with captures.kept_off():
            inside.set()
            leave.wait(LIMIT)

    (thread,) = begin(call)
    assert inside.wait(LIMIT)
    with pytest.raises(BusyError), captures.alone(0.01):
        pytest.fail("it captured meanwhile")
    assert captures.waiting == 0
    for other in begin(lambda: captures.kept_off().__enter__()):
        other.join(LIMIT)
        assert not other.is_alive()
    leave.set()
    thread.join(LIMIT)


def test_a_capture_that_did_not_wait_is_possible_later() -> None:
    captures = Captures()
    with captures.kept_off(), pytest.raises(BusyError), captures.alone(0.01):
        pytest.fail("it captured meanwhile")
    with captures.alone(LIMIT):
        pass
