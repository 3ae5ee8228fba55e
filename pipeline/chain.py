"""Stages that run in one thread, one pulling from the other, each timed by itself."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from foveate.pipeline.bounded_queue import END, Cancelled
from foveate.pipeline.timing import StageClock, Turns


@dataclass(frozen=True, slots=True)
class Stage:
    """A generator over its upstream.

    ``depth``: how many items the queue behind it holds, where the next stage has another thread.
    """

    name: str
    body: Callable[[Iterator[Any]], Iterator[Any]]
    depth: int = 1


class Chain:
    """Runs ``stages`` over one upstream. Created, iterated and closed by one thread."""

    def __init__(self, stages: Sequence[Stage], clocks: Sequence[StageClock], upstream: Iterator[Any]) -> None:
        self._stages = stages
        self._clocks = clocks
        self._upstream = upstream
        self._culprit: tuple[BaseException, str] | None = None

    def __iter__(self) -> Generator[Any]:
        """Yield what the last stage yields. Raises what a stage raises; see ``blame``."""
        turns = Turns()
        with ExitStack() as closing:
            upstream, before = self._upstream, None
            for stage, clock in zip(self._stages, self._clocks, strict=True):
                received = _received(upstream, before, clock, turns)
                upstream, before = _Link(stage, received, self._accuse), clock
                closing.callback(upstream.close)
            yield from _received(upstream, before, None, turns)

    def _accuse(self, error: BaseException, name: str) -> None:
        """The innermost stage that an error comes through is the one that raised it."""
        if self._culprit is None or self._culprit[0] is not error:
            self._culprit = error, name

    def blame(self, error: BaseException) -> str:
        """Name of the stage that raised ``error``."""
        return self._culprit[1] if self._culprit and self._culprit[0] is error else self._stages[-1].name


def _received(
    upstream: Iterator[Any], theirs: StageClock | None, own: StageClock | None, turns: Turns
) -> Generator[Any]:
    """The upstream as the stage behind it sees it: while it is waited for, the time is ``theirs``."""
    while True:
        begin = turns.give(theirs)
        item = next(upstream, END)
        waited = turns.give(own) - begin
        if own is not None:
            own.waiting_input += waited
        if item is END:
            return
        if theirs is not None:
            theirs.made()
        yield item
        del item  # not to be held while waiting for the next one


class _Link:
    """One stage of a chain, as the next one's upstream."""

    def __init__(self, stage: Stage, received: Iterator[Any], accuse: Callable[[BaseException, str], None]) -> None:
        self._name = stage.name
        self._body = stage.body
        self._received = received
        self._accuse = accuse
        self._items: Iterator[Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            if self._items is None:
                self._items = self._body(self._received)
            return next(self._items)
        except (StopIteration, Cancelled):
            raise
        except BaseException as error:
            self._accuse(error, self._name)
            raise

    def close(self) -> None:
        """End the stage's generator."""
        close = getattr(self._items, "close", None)
        if close is not None:
            try:
                close()
            except BaseException as error:
                self._accuse(error, self._name)
                raise
