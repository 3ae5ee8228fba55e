"""async for: the event loop goes on, and on every way out the threads are joined."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.stream import Stream


class Slow:
    """A sink that takes its time, and tells when it is closed."""

    needs_patches = needs_heat = needs_query = False

    def __init__(self, seconds: float, fails_at: int | None = None) -> None:
        self._seconds, self._fails_at = seconds, fails_at
        self.begun, self.closed = threading.Event(), False

    def open(self, header: Header) -> None:
        """Nothing to open."""

    def write(self, frame: FrameView, selection: Selection) -> None:
        self.begun.set()
        time.sleep(self._seconds)
        if selection.index == self._fails_at:
            raise SinkError("the disk is full")

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def opened(samples: Path) -> Callable[..., Stream]:
    def stream(sink: Slow | None = None, frames: int = 8) -> Stream:
        sinks = [] if sink is None else [sink]
        return open_stream(samples / "tree.mp4", engine="cpu", sinks=sinks, source={"frames": frames})

    return stream


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("foveate")]


def test_the_selections_are_those_of_an_ordinary_loop(opened: Callable[..., Stream]) -> None:
    async def collected() -> list[Selection]:
        async with opened() as stream:
            return [selection async for selection in stream]

    with opened() as stream:
        expected = list(stream)
    found = asyncio.run(collected())
    assert len(found) == 8
    for one, other in zip(found, expected, strict=True):
        assert (one.x == other.x).all()
        assert one.time == other.time
    assert threads() == []


def test_the_event_loop_goes_on_while_a_frame_is_waited_for(opened: Callable[..., Stream]) -> None:
    async def run() -> tuple[int, float]:
        ticks = 0
        longest = 0.0

        async def tick() -> None:
            nonlocal ticks, longest
            while True:
                begin = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - begin)
                ticks += 1

        ticker = asyncio.create_task(tick())
        async with opened(Slow(0.2)) as stream:
            assert len([selection async for selection in stream]) == 8
        ticker.cancel()
        return ticks, longest

    ticks, longest = asyncio.run(run())
    assert ticks > 30  # in 1.6 s
    assert longest < 0.15  # a frame takes 0.2 s


def test_leaving_early_ends_the_threads_and_closes_the_outputs(opened: Callable[..., Stream]) -> None:
    sink = Slow(0.0)

    async def run() -> None:
        async with opened(sink, frames=60) as stream:
            async for selection in stream:
                if selection.index == 2:
                    break

    asyncio.run(run())
    assert sink.closed
    assert threads() == []


def test_also_without_a_context_manager(opened: Callable[..., Stream]) -> None:
    sink = Slow(0.0)

    async def run() -> None:
        stream = opened(sink, frames=60)
        async for _ in stream:
            break
        limit = time.monotonic() + 10
        while threads() and time.monotonic() < limit:
            await asyncio.sleep(0.01)
        assert threads() == []

    asyncio.run(run())
    assert sink.closed


@pytest.mark.parametrize("managed", [True, False])
def test_a_cancelled_task_ends_the_threads(managed: bool, opened: Callable[..., Stream]) -> None:
    sink = Slow(0.3)

    async def read() -> None:
        stream = opened(sink, frames=60)
        if managed:
            async with stream:
                async for _ in stream:
                    pass
        else:
            async for _ in stream:
                pass

    async def run() -> float:
        task = asyncio.create_task(read())
        assert await asyncio.to_thread(sink.begun.wait, 10)
        begin = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert threads() == []
        return time.monotonic() - begin

    assert asyncio.run(run()) < 3
    assert sink.closed
    assert threads() == []


def test_an_error_of_a_stage_is_raised(opened: Callable[..., Stream]) -> None:
    seen = []

    async def run() -> None:
        async for selection in opened(Slow(0.0, fails_at=3)):
            seen.append(selection.index)

    with pytest.raises(SinkError, match="the disk is full"):
        asyncio.run(run())
    assert seen == [0, 1, 2][: len(seen)]  # those on their way are lost
    assert threads() == []


def test_several_streams_are_waited_for_at_once(opened: Callable[..., Stream]) -> None:
    """More than the threads that an event loop lends on a small machine."""

    async def count(stream: Stream) -> int:
        async with stream:
            return len([selection async for selection in stream])

    async def run() -> list[int]:
        return await asyncio.gather(*(count(opened(Slow(0.05), frames=4)) for _ in range(12)))

    assert asyncio.run(run()) == [4] * 12
    assert threads() == []


def test_a_stream_that_was_never_read_is_closed(opened: Callable[..., Stream]) -> None:
    async def run() -> None:
        async with opened() as stream:
            assert stream.info.width == 320

    asyncio.run(run())
    assert threads() == []
