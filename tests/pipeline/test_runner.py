"""The runner: end, error, cancel, back-pressure, dropping, times, and no thread left on any way out."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.pipeline.bounded_queue import BoundedQueue, Cancelled
from foveate.pipeline.chain import Stage
from foveate.pipeline.runner import Runner
from foveate.pipeline.timing import RECENT, StageClock

Body = Callable[[Iterator[Any]], Iterator[Any]]


class Probe:
    """A first stage that remembers what happened to it."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count
        self.made = 0
        self.read_by: threading.Thread | None = None
        self.closed_by: threading.Thread | None = None

    def __call__(self, upstream: Iterator[Any]) -> Iterator[int]:
        assert list(upstream) == []
        self.read_by = threading.current_thread()
        try:
            while self.count is None or self.made < self.count:
                self.made += 1
                yield self.made - 1
        finally:
            self.closed_by = threading.current_thread()


def alone(*stages: Stage) -> list[list[Stage]]:
    """Each stage with a thread of its own."""
    return [[stage] for stage in stages]


def same(upstream: Iterator[Any]) -> Iterator[Any]:
    yield from upstream


def failing(error: BaseException, after: int) -> Body:
    def body(upstream: Iterator[Any]) -> Iterator[Any]:
        for count, item in enumerate(upstream):
            if count == after:
                raise error
            yield item

    return body


def slow(seconds: float) -> Body:
    def body(upstream: Iterator[Any]) -> Iterator[Any]:
        for item in upstream:
            time.sleep(seconds)
            yield item

    return body


def stage_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("foveate-")]


@pytest.fixture(autouse=True)
def _none_left_alive() -> Iterator[None]:
    yield
    gc.collect()
    assert stage_threads() == []


def wait_until(condition: Callable[[], bool], limit: float = 5.0) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_everything_arrives_in_order_and_each_stage_has_its_thread() -> None:
    probe, names = Probe(1000), []

    def witness(upstream: Iterator[Any]) -> Iterator[Any]:
        names.append(threading.current_thread().name)
        yield from upstream

    runner = Runner(alone(Stage("decode", probe), Stage("upload", witness), Stage("output", witness)))
    assert list(runner) == list(range(1000))
    assert names == ["foveate-upload", "foveate-output"]
    assert probe.closed_by is probe.read_by is not threading.current_thread()


def test_one_stage_no_items() -> None:
    assert list(Runner(alone(Stage("decode", Probe(0))))) == []


def test_a_stage_may_yield_more_or_fewer_items_and_some_behind_the_last() -> None:
    def pairs(upstream: Iterator[int]) -> Iterator[list[int]]:
        held: list[int] = []
        for item in upstream:
            held.append(item)
            if len(held) == 2:
                yield held
                held = []
        yield held

    assert list(Runner(alone(Stage("decode", Probe(5)), Stage("pairs", pairs)))) == [[0, 1], [2, 3], [4]]


def test_items_with_odd_equality_pass() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous, as an array's")

        __hash__ = None  # type: ignore[assignment]

    items = [Odd(), Odd()]
    passed = list(Runner(alone(Stage("decode", lambda upstream: iter(items)), Stage("same", same))))
    assert [id(item) for item in passed] == [id(item) for item in items]


@pytest.mark.parametrize("position", [0, 1, 2, 3])
@pytest.mark.parametrize("after", [0, 7])
def test_an_error_arrives_as_it_is_and_names_its_stage(position: int, after: int) -> None:
    error = LookupError("nothing there")
    stages = [Stage(f"s{number}", same) for number in range(4)]
    probe = Probe()
    stages[0] = Stage("s0", probe)
    if position:
        stages[position] = Stage(f"s{position}", failing(error, after))
    else:
        stages[0] = Stage("s0", lambda upstream: failing(error, after)(iter(range(100))))
    with pytest.raises(LookupError) as caught:
        list(Runner(alone(*stages)))
    assert caught.value is error
    assert error.__notes__ == [f"in stage s{position}"]
    assert probe.closed_by is probe.read_by


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), MemoryError(), GeneratorExit()])
def test_no_kind_of_exception_vanishes(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        list(Runner(alone(Stage("decode", Probe()), Stage("cascade", failing(error, 3)))))
    assert caught.value is error


def test_an_error_before_the_first_item_and_outside_any_generator() -> None:
    def refuse(upstream: Iterator[Any]) -> Iterator[Any]:
        raise OSError("no such device")

    with pytest.raises(OSError, match="no such device"):
        list(Runner(alone(Stage("decode", refuse), Stage("same", same))))


def test_later_errors_become_notes() -> None:
    def sink(upstream: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from upstream
        finally:
            raise OSError("disk full")

    with pytest.raises(LookupError) as caught:
        list(Runner(alone(Stage("decode", lambda up: failing(LookupError(), 2)(iter(range(9)))), Stage("out", sink))))
    assert caught.value.__notes__ == ["in stage decode", "then in stage out: OSError: disk full"]


def test_a_stage_that_ends_early_ends_those_before_it_and_loses_nothing() -> None:
    def first_ten(upstream: Iterator[Any]) -> Iterator[Any]:
        for _ in range(10):
            yield next(upstream)

    probe = Probe()
    assert list(Runner(alone(Stage("decode", probe), Stage("ten", first_ten), Stage("same", same)))) == list(range(10))
    assert probe.closed_by is probe.read_by


def test_break_ends_everything() -> None:
    probe = Probe()
    for item in Runner(alone(Stage("decode", probe), Stage("same", same))):
        if item == 5:
            break
    assert stage_threads() == []
    assert probe.closed_by is probe.read_by


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("the consumer's own")])
def test_an_exception_in_the_consumer_ends_everything(error: BaseException) -> None:
    def consume() -> None:
        with Runner(alone(Stage("decode", Probe()), Stage("same", same))) as runner:
            for item in runner:
                if item == 5:
                    raise error

    with pytest.raises(type(error)) as caught:
        consume()
    assert stage_threads() == []
    assert caught.value is error


def test_an_unseen_error_is_noted_on_the_consumers() -> None:
    def sink(upstream: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from upstream
        finally:
            raise OSError("disk full")

    def consume() -> None:
        with Runner(alone(Stage("decode", Probe()), Stage("out", sink))) as runner:
            next(iter(runner))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        consume()
    assert caught.value.__notes__ == ["also in stage out: OSError: disk full"]


def test_close_raises_what_nobody_has_seen_once() -> None:
    def sink(upstream: Iterator[Any]) -> Iterator[Any]:
        try:
            yield from upstream
        finally:
            raise OSError("disk full")

    runner = Runner(alone(Stage("decode", Probe()), Stage("out", sink)))
    items = iter(runner)
    next(items)
    with pytest.raises(OSError, match="disk full"):
        runner.close()
    runner.close()
    assert list(items) == []


def test_garbage_ends_everything() -> None:
    runner = Runner(alone(Stage("decode", Probe()), Stage("same", same)))
    items = iter(runner)
    next(items)
    assert len(stage_threads()) == 2
    del runner, items
    gc.collect()
    assert stage_threads() == []


def test_the_interpreter_ends_also_while_a_runner_is_open() -> None:
    program = """
from foveate.pipeline.chain import Stage
from foveate.pipeline.runner import Runner

def count(upstream):
    try:
        while True:
            yield 0
    finally:
        print("closed", flush=True)

items = iter(Runner([[Stage("decode", count)], [Stage("same", lambda upstream: (item for item in upstream))]]))
next(items)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=10, check=True)
    assert (done.stdout, done.stderr) == ("closed\n", "")


def test_close_before_the_first_item_and_twice() -> None:
    runner = Runner(alone(Stage("decode", Probe())))
    runner.close()
    runner.close()
    assert list(runner) == []


def test_close_from_another_thread_wakes_the_consumer() -> None:
    def silent(upstream: Iterator[Any]) -> Iterator[Any]:
        yield from upstream
        gate.wait()
        yield 1

    gate = threading.Event()
    runner = Runner(alone(Stage("decode", silent), Stage("same", same)))
    closer = threading.Timer(0.05, runner.close)
    closer.start()
    begin = time.monotonic()
    threading.Timer(0.2, gate.set).start()
    assert list(runner) == []
    closer.join()
    assert time.monotonic() - begin < 6.0


def test_a_reader_stuck_in_a_slow_call_is_left_behind_after_a_second(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gate, closed = threading.Event(), threading.Event()

    def stuck(upstream: Iterator[Any]) -> Iterator[Any]:
        try:
            yield 0
            gate.wait()
            yield 1
        finally:
            closed.set()

    begin = time.monotonic()
    with Runner(alone(Stage("decode", stuck), Stage("same", same))) as runner:
        next(iter(runner))
    assert 0.9 < time.monotonic() - begin < 6.0
    assert [record.args for record in caplog.records] == [("foveate-decode",)]
    gate.set()
    assert closed.wait(2.0)  # its generator is closed all the same, by its own thread
    wait_until(lambda: stage_threads() == [])


def test_a_second_iteration_is_refused() -> None:
    runner = Runner(alone(Stage("decode", Probe(1))))
    list(runner)
    with pytest.raises(RuntimeError, match="once"):
        next(iter(runner))


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="at least one stage"):
        Runner([])
    with pytest.raises(ValueError, match="at least one stage"):
        Runner([[Stage("decode", Probe())], []])
    with pytest.raises(ValueError, match="depth must be at least 1, got 0"):
        Runner(alone(Stage("decode", Probe(), depth=0)))


@pytest.mark.parametrize("depth", [1, 3])
def test_back_pressure_bounds_what_is_in_flight(depth: int) -> None:
    probe = Probe()
    with Runner(alone(Stage("decode", probe, depth), Stage("a", same, depth), Stage("b", same, depth))) as runner:
        items = iter(runner)
        for taken in range(1, 20):
            next(items)
            time.sleep(0.005)
            # Each queue holds `depth`, and each stage one more in its hands.
            assert probe.made - taken <= 3 * (depth + 1)
        wait_until(lambda: probe.made - 19 == 3 * (depth + 1))
        time.sleep(0.05)
        assert probe.made - 19 == 3 * (depth + 1)


def test_a_cancelled_queue_refuses_both_sides() -> None:
    queue = BoundedQueue(1)
    queue.put(0)
    queue.cancel()
    with pytest.raises(Cancelled):
        queue.put(1)
    with pytest.raises(Cancelled):
        queue.get()


def test_the_times_say_which_stage_is_slow() -> None:
    runner = Runner(alone(Stage("decode", Probe(30)), Stage("cascade", slow(0.01)), Stage("output", same)))
    assert len(list(runner)) == 30
    decode, cascade, output = runner.report()
    assert (decode.name, cascade.name, output.name) == ("decode", "cascade", "output")
    assert (decode.items, cascade.items, output.items) == (30, 30, 30)
    assert cascade.busy == pytest.approx(0.3, rel=0.5)
    assert cascade.p50 == pytest.approx(0.01, rel=0.5)
    assert cascade.p50 <= cascade.p90 <= cascade.p99
    assert cascade.busy_cpu < 0.1  # it slept
    assert decode.waiting_room > 0.2
    assert output.waiting_input > 0.2
    assert decode.busy < 0.1
    assert output.busy < 0.1


def working(seconds: float) -> Body:
    """Computes for so long, by the thread's processor time."""

    def body(upstream: Iterator[Any]) -> Iterator[Any]:
        for item in upstream:
            begin = time.thread_time()
            while time.thread_time() - begin < seconds:
                pass
            yield item

    return body


@pytest.mark.parametrize("seconds", [0.00002, 0.0004])
def test_processor_time_of_stages_that_share_a_thread(seconds: float) -> None:
    """Of brief turns, which are not measured one by one, as of long ones; what sleeps has none."""
    stages = [Stage("decode", Probe(400)), Stage("work", working(seconds)), Stage("sleep", slow(0.0005))]
    runner = Runner([stages])
    runner.drain()
    decode, work, sleep = runner.report()
    assert 0.9 * 400 * seconds <= work.busy_cpu <= 400 * (seconds + 0.0001)
    assert decode.busy_cpu < 0.02
    assert sleep.busy_cpu < 0.5 * sleep.busy


@pytest.mark.parametrize("in_flight", [None, 2])
def test_where_the_caller_takes_nothing_all_runs_to_the_end(in_flight: int | None) -> None:
    probe, seen = Probe(500), []

    def note(upstream: Iterator[Any]) -> Iterator[Any]:
        for item in upstream:
            seen.append(item)
            yield item

    runner = Runner(alone(Stage("decode", probe), Stage("note", note)), in_flight)
    runner.drain()
    assert seen == list(range(500))
    assert probe.closed_by is not None


def test_an_error_ends_a_runner_from_which_nothing_is_taken() -> None:
    with (
        pytest.raises(LookupError),
        Runner(alone(Stage("a", Probe()), Stage("b", failing(LookupError(), 9)))) as runner,
    ):
        runner.drain()


def test_a_runner_from_which_nothing_is_taken_can_be_cancelled() -> None:
    probe = Probe()
    runner = Runner(alone(Stage("decode", probe), Stage("same", same)), 2)
    threading.Timer(0.05, runner.cancel).start()
    runner.drain()
    assert probe.closed_by is not None


def test_the_times_can_be_read_while_running() -> None:
    with Runner(alone(Stage("decode", Probe()), Stage("same", same))) as runner:
        items = iter(runner)
        assert [report.p99 for report in runner.report()] == [0.0, 0.0]
        for _ in range(2000):
            next(items)
            assert runner.report()[1].items >= 1


def test_percentiles_are_nearest_rank_over_the_latest_items() -> None:
    clock = StageClock("cascade")
    for _ in range(RECENT):
        clock.busy += 1000.0
        clock.made()
    for number in range(RECENT):
        clock.busy += number + 1
        clock.made()
    report = clock.report()
    assert report.items == 2 * RECENT
    # RECENT is 4096: ranks ceil(0.5 * 4096), ceil(0.9 * 4096), ceil(0.99 * 4096), values counted from 1.
    assert (report.p50, report.p90, report.p99) == (2048.0, 3687.0, 4056.0)


def consume_some(runner: Runner, count: int) -> tuple[list[int], LookupError | None]:
    """The first ``count`` items (all for 0), and the error that ended them."""
    seen: list[int] = []
    try:
        with runner:
            for item in runner:
                seen.append(item)
                if len(seen) == count:
                    break
    except LookupError as error:
        return seen, error
    return seen, None


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 30),
    depths=st.lists(st.integers(1, 3), min_size=1, max_size=4),
    fault=st.one_of(st.none(), st.tuples(st.integers(0, 3), st.integers(0, 30))),
    taken=st.integers(0, 40),
)
def test_any_mixture_delivers_a_prefix_and_leaves_nothing(
    count: int, depths: list[int], fault: tuple[int, int] | None, taken: int
) -> None:
    error = LookupError("planned")
    probe = Probe(count)
    stages = [Stage("s0", probe, depths[0])]
    for number, depth in enumerate(depths[1:], start=1):
        planned = fault is not None and fault[0] == number
        stages.append(Stage(f"s{number}", failing(error, fault[1]) if fault and planned else same, depth))
    fails = fault is not None and 1 <= fault[0] < len(depths) and fault[1] < count
    seen, raised = consume_some(Runner(alone(*stages)), taken)
    assert stage_threads() == []
    assert raised in (None, error)
    assert seen == list(range(len(seen)))
    assert fails or raised is None
    assert raised or len(seen) == min(taken or count, count)
    assert probe.closed_by is probe.read_by


def named(threads: set[str]) -> Any:
    """A stage that notes the thread it runs in."""

    def body(upstream: Iterator[Any]) -> Iterator[Any]:
        for item in upstream:
            threads.add(threading.current_thread().name)
            yield item

    return body


def test_stages_in_one_list_share_a_thread() -> None:
    threads: set[str] = set()
    together = [Stage(name, named(threads)) for name in ("upload", "cascade")]
    assert list(Runner([[Stage("decode", Probe(5))], together, [Stage("output", same)]])) == [0, 1, 2, 3, 4]
    assert threads == {"foveate-upload-cascade"}


@pytest.mark.parametrize("shared", [True, False])
def test_each_stage_of_a_thread_has_its_own_times_and_errors(shared: bool) -> None:
    def threads(*stages: Stage) -> list[list[Stage]]:
        return [[stages[0]], list(stages[1:])] if shared else alone(*stages)

    runner = Runner(threads(Stage("decode", Probe(5)), Stage("a", slow(0.03)), Stage("b", slow(0.01))))
    assert len(list(runner)) == 5
    _, first, second = runner.report()
    assert (first.items, second.items) == (5, 5)
    assert first.busy >= 0.15
    assert second.busy >= 0.05
    assert second.busy < first.busy
    assert second.waiting_input > second.busy

    error = LookupError("lost")
    with pytest.raises(LookupError) as caught:
        list(Runner(threads(Stage("decode", Probe(5)), Stage("a", failing(error, 2)), Stage("b", same))))
    assert caught.value is error
    assert error.__notes__ == ["in stage a"]


def test_so_many_are_in_flight_and_no_more():
    """The first stage is asked for a new item only when the caller is through with one."""
    made = []

    def source(_):
        for number in range(10):
            made.append(number)
            yield number

    def pass_on(items):
        yield from items

    with Runner(alone(Stage("a", source), Stage("b", pass_on), Stage("c", pass_on)), in_flight=2) as runner:
        for number in runner:
            time.sleep(0.05)
            assert len(made) == min(10, number + 2)


def test_an_interrupt_ends_a_wait_inside_the_first_stage():
    waiting = threading.Event()

    def source(_):
        yield 1
        waiting.wait(30)

    begin = time.monotonic()
    with Runner(alone(Stage("a", source)), interrupt=waiting.set) as runner:
        assert next(iter(runner)) == 1
    assert time.monotonic() - begin < 10.0
