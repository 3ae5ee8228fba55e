"""Queries on the GPU, and the host's part in them.

What pixels tell by themselves and what is relevant among it is found on the device. Regions and motion, and a model's
embeddings, are worked out on the host, by the CPU engine's own code: so both engines find the same. A frame waits for
the host only where that is read; else the host follows what moves behind the frame's work, to know it when it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frames import AnyFrame
from foveate.cuda.query.of_pixels import AttributesOfPixels
from foveate.cuda.query.relevance import Relevance
from foveate.cuda.state import PixelState
from foveate.cuda.updates import update_of
from foveate.pipeline.attributes.embedder import OF_REGIONS
from foveate.pipeline.attributes.vocabulary import TEXT
from foveate.pipeline.cascade.cache import Cache
from foveate.pipeline.cascade.feedback import Fed
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.flow import Flow, Map
from foveate.pipeline.geometry import Mask, tiles_to_cells
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.query.encoder import View
from foveate.pipeline.query.program import COEFFICIENTS, Program
from foveate.pipeline.relevance.asked import Asked
from foveate.pipeline.relevance.interest import Interest

_SLOTS = 2


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Page-locked copies of what the host reads of one frame."""

    frame: NDArray[np.void]  # FRAME_STATE[1]
    changed: NDArray[np.uint8]  # [tiles]
    written: NDArray[np.uint8]  # [tiles]
    flow: NDArray[np.float32]  # [3, grid]


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A frame that the host has not looked at yet."""

    frame: AnyFrame
    slot: int
    wanted: frozenset[int]  # coefficients that the host makes or reads


class Asking:
    """Looks at each frame of one size, and tells the device which of its cells take part.

    Coefficients that nothing reads hold on the device what they last were.
    """

    def __init__(
        self,
        memory: Memory,
        pixels: PixelState,
        flow: DeviceArray,
        plan: StreamPlan,
        asked: Asked,
        given: bool,
        stream: Stream,
    ) -> None:
        """``flow``: float32[3, grid]; where ``given``, that of all cells, not only of the changed ones.

        Raises EngineError.
        """
        self._geometry = geometry = pixels.geometry
        settings = plan.settings
        self._given, self._caches = given, settings.cache.enabled
        self._interest = Interest(asked, geometry, settings.maps)
        self._own = asked.encoder.name == "attributes"  # else all embeddings are the host's
        self._shows = any(name.startswith("query") for name in settings.maps)
        self._participation = memory.array("participation", geometry.grid, np.float32, stream)
        self._embeddings = memory.array("embeddings", (COEFFICIENTS, *geometry.grid), np.float32, stream)
        self._of_pixels: AttributesOfPixels | None = None
        if plan.attributes:
            found = self._embeddings if self._own else None
            self._of_pixels = AttributesOfPixels(memory, pixels, _SLOTS, stream, found)
        self._ages = Cache(geometry.grid, (), (), settings.cache)
        self._read = (pixels.frame, pixels.changed, pixels.written, flow)
        self._slots = [_slot(memory, self._read) for _ in range(_SLOTS)]
        self._pending: list[_Pending] = []
        self._sent = memory.pinned(self._embeddings.shape, np.float32)
        self._relevance = Relevance(memory.device, geometry)
        self._program: Program | None = None  # what was asked last

    def channels(self) -> dict[str, DeviceArray]:
        """The embedding channels, and "text" where it is made: float32[grid] each."""
        channels = {f"{EMBEDDING}{index}": self._embeddings.part(index) for index in range(COEFFICIENTS)}
        return channels if self._of_pixels is None else {**channels, "text": self._of_pixels.found.part(TEXT)}

    def ask(self, frame: AnyFrame, fed: Fed, slot: int, stream: Stream) -> DeviceArray | None:
        """Enqueue what makes ``frame``'s participation, float32[grid]; None where nothing is asked, or known yet.

        Behind the frame's pixels and flow. Waits where the host has its part in it; else ``arrived`` must follow.
        """
        self._interest.feed(fed)
        if self._of_pixels is not None:
            self._of_pixels.enqueue(frame.index, stream)
        wanted, made = self._wanted()
        self._fetch(slot, wanted, stream)
        self._pending.append(_Pending(frame, slot, wanted))
        if wanted or self._shows or not self._own:
            stream.synchronize()
            while self._pending:
                self._look(self._pending.pop(0))
            self._send(made, stream)
        return self._answer(self._interest.query if self._own else self._interest.program, stream)

    def arrived(self, slot: int) -> None:
        """The work of the frame in ``slot`` is done: the host looks at it, where it has not yet."""
        while any(pending.slot == slot for pending in self._pending):
            self._look(self._pending.pop(0))

    def _wanted(self) -> tuple[frozenset[int], frozenset[int]]:
        """The coefficients that the host makes or reads, and those that it makes."""
        wanted = self._interest.wanted
        if not self._own:
            return wanted, wanted
        made = wanted & OF_REGIONS
        return made | self._interest.mapped, made

    def _fetch(self, slot: int, wanted: frozenset[int], stream: Stream) -> None:
        from pycuda import driver

        mine = self._slots[slot]
        for host, array in zip((mine.frame, mine.changed, mine.written, mine.flow), self._read, strict=True):
            driver.memcpy_dtoh_async(host, array.pointer, stream)
        if self._own and self._of_pixels is not None:
            self._of_pixels.fetch(slot, stream, looks=bool(wanted))

    def _send(self, made: frozenset[int], stream: Stream) -> None:
        """Enqueue the copies of what the host has made."""
        for index in sorted(made):
            self._sent[index] = self._interest.coefficients[index]
            self._embeddings.part(index).copy_from(self._sent[index], stream)

    def _answer(self, program: Program | None, stream: Stream) -> DeviceArray | None:
        if program is None:
            return None
        if program is not self._program:
            self._relevance.ask(program, stream)
            self._program = program
        self._relevance.enqueue(self._embeddings, self._participation, stream)
        return self._participation

    def extras(self, fed: Fed) -> dict[str, Any]:
        """For the last frame's record; see Interest."""
        return self._interest.extras(fed)

    def map(self, name: str) -> Map:
        """The last frame's map "query" or "query:TEXT": float32[grid]."""
        return self._interest.map(name)

    def close(self) -> None:
        """End the embedder's threads, and give memory back. Safe to call twice."""
        self._interest.close()
        self._relevance.free()

    def _look(self, pending: _Pending) -> None:
        slot = self._slots[pending.slot]
        update = update_of(pending.frame, self._geometry, slot.frame, slot.changed, slot.written)
        changed = np.asarray(tiles_to_cells(update.changed), np.bool_)
        flow, valid = self._follow(update, changed, slot.flow)
        about = pending.frame, self._geometry, update.keyframe, changed
        maps = self._of_pixels.maps(pending.slot) if self._own and self._of_pixels is not None else {}
        self._interest.look(View(*about, flow, valid, maps, pending.wanted))

    def _follow(self, update: Update, changed: Mask, flow: Map) -> tuple[Flow | None, Mask]:
        """The frame's flow, and the cells whose carried maps may be reused, as carry.cu finds it.

        The attributes encoder carries none.
        """
        found, valid = None, np.zeros(self._geometry.grid, np.bool_)
        carries = self._caches and update.keyframe is None
        if carries and changed.any():
            dx, dy, confidence = flow
            if not self._given:
                dx, dy = (np.where(changed, each, np.float32(0)) for each in (dx, dy))
                confidence = np.where(changed, confidence, np.float32(1))
            found = Flow(dx, dy, confidence)
        if self._own:
            return found, valid
        if carries:
            valid = self._ages.follow(found)
        else:
            self._ages.clear()
        self._ages.renew(valid)
        return found, valid


def _slot(memory: Memory, arrays: tuple[DeviceArray, ...]) -> _Slot:
    return _Slot(*(memory.pinned(array.shape or (1,), array.dtype) for array in arrays))
