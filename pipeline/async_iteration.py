"""A stream in asyncio: its Selections are waited for in a thread, and so is its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from foveate.pipeline.selection import Selection

if TYPE_CHECKING:
    from foveate.pipeline.stream import Stream


class AsyncIteration:
    """The thread that waits for one stream: its own, because many would take up all those that an event loop lends.

    It does not hold the stream, which holds it.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="foveate-await")  # begun with the first wait
        self._ending: asyncio.Task[None] | None = None

    async def selections(self, stream: Stream) -> AsyncGenerator[Selection]:
        """Yield the Selections, one asked for at a time; at the end close the stream. Raises what it raises."""
        loop = asyncio.get_running_loop()
        try:
            while (selection := await loop.run_in_executor(self._thread, next, stream, None)) is not None:
                yield selection
                del selection  # not to be held while waiting for the next one
        finally:
            await self.end(stream)

    async def end(self, stream: Stream) -> None:
        """Close the stream, and end the thread. It goes on if the task that waits for it is cancelled."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(stream))
        await asyncio.shield(self._ending)

    async def _end(self, stream: Stream) -> None:
        stream.cancel()
        loop = asyncio.get_running_loop()
        try:  # behind a wait for the next Selection that may still be going on
            await loop.run_in_executor(self._thread, stream.close)
        finally:
            self._thread.shutdown()  # at once, because it is idle
