"""Queries on the GPU, with the host's share of the work.

The device computes the attributes of single cells and the relevance. The host computes regions, motion and a model's
embeddings, with the CPU engine's own code, so that both engines agree. A frame waits for the host only if these are
read; otherwise the host tracks motion after the frame's work on the device, so that a later query can use it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import SLOTS
from foveate.cuda.frames import AnyFrame
from foveate.cuda.query.pixel_attributes import PixelAttributes
from foveate.cuda.query.relevance import Relevance
from foveate.cuda.state import PixelState, update_of
from foveate.pipeline.attributes.embedder import REGION_ATTRIBUTES
from foveate.pipeline.attributes.vocabulary import TEXT
from foveate.pipeline.cascade.cache import Cache
from foveate.pipeline.cascade.feedback import FrameFeedback
from foveate.pipeline.channels import EMBEDDING
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import Map, Mask, tiles_to_cells
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.query.terms import COEFFICIENTS, QueryTerms
from foveate.pipeline.relevance.query_relevance import QueryRelevance
from foveate.pipeline.relevance.stream_query import StreamQuery


@dataclass(frozen=True, slots=True, eq=False)
class _Slot:
    """Page-locked copies of the arrays that the host reads of one frame."""

    frame: NDArray[np.void]  # FRAME_STATE[1]
    changed: NDArray[np.uint8]  # [tiles]
    written: NDArray[np.uint8]  # [tiles]
    flow: NDArray[np.float32]  # [3, grid]


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    """A frame that the host has not processed yet."""

    frame: AnyFrame
    slot: int
    wanted: frozenset[int]  # coefficients that the host computes or reads


class DeviceQuery:
    """The relevance of each cell to the queries, on the device, for frames of one size.

    Coefficients that nothing reads keep older values on the device.
    """

    def __init__(
        self,
        memory: Memory,
        pixels: PixelState,
        flow: DeviceArray,
        plan: StreamPlan,
        query: StreamQuery,
        dense_flow: bool,
        stream: Stream,
    ) -> None:
        """``flow``: float32[3, grid]; if ``dense_flow``, it holds for all cells, not only for the changed ones.

        Raises EngineError.
        """
        self._geometry = geometry = pixels.geometry
        settings = plan.settings
        self._dense_flow, self._caches = dense_flow, settings.cache.enabled
        self._query_relevance = QueryRelevance(query, geometry, settings.maps)
        self._own = query.encoder.name == "attributes"  # else the host computes all embeddings
        self._has_query_maps = any(name.startswith("query") for name in settings.maps)
        self._combined = memory.array("query relevance", geometry.grid, np.float32, stream)
        self._embeddings = memory.array("embeddings", (COEFFICIENTS, *geometry.grid), np.float32, stream)
        self._pixel_attributes: PixelAttributes | None = None
        if plan.attributes:
            found = self._embeddings if self._own else None
            self._pixel_attributes = PixelAttributes(memory, pixels, stream, found)
        self._ages = Cache(geometry.grid, (), (), settings.cache)
        self._read = (pixels.frame, pixels.changed, pixels.written, flow)
        self._slots = [_slot(memory, self._read) for _ in range(SLOTS)]
        self._pending: list[_Pending] = []
        self._upload = memory.pinned(self._embeddings.shape, np.float32)
        self._relevance = Relevance(memory.device, geometry)
        self._terms: QueryTerms | None = None  # those on the device

    def channels(self) -> dict[str, DeviceArray]:
        """The embedding channels, and "text" if it is computed here: float32[grid] each."""
        channels = {f"{EMBEDDING}{index}": self._embeddings.part(index) for index in range(COEFFICIENTS)}
        if self._pixel_attributes is not None:
            channels["text"] = self._pixel_attributes.found.part(TEXT)
        return channels

    def enqueue(self, frame: AnyFrame, feedback: FrameFeedback, slot: int, stream: Stream) -> DeviceArray | None:
        """Enqueue the relevance of ``frame``'s cells, float32[grid]; None without a query or embeddings.

        To be enqueued after the frame's pixels and flow. Waits if the host computes or reads anything of it; else
        ``finish`` must follow.
        """
        self._query_relevance.take(feedback)
        if self._pixel_attributes is not None:
            self._pixel_attributes.enqueue(frame.index, stream)
        wanted, computed = self._wanted()
        self._fetch(slot, wanted, stream)
        self._pending.append(_Pending(frame, slot, wanted))
        if wanted or self._has_query_maps or not self._own:
            stream.synchronize()
            while self._pending:
                self._process(self._pending.pop(0))
            self._enqueue_upload(computed, stream)
        terms = self._query_relevance.terms if self._own else self._query_relevance.usable_terms
        return self._enqueue_relevance(terms, stream)

    def finish(self, slot: int) -> None:
        """The device has finished the frame in ``slot``: process it on the host, unless that was done."""
        while any(pending.slot == slot for pending in self._pending):
            self._process(self._pending.pop(0))

    def _wanted(self) -> tuple[frozenset[int], frozenset[int]]:
        """The coefficients that the host computes or reads, and those that it computes."""
        wanted = self._query_relevance.wanted
        if not self._own:
            return wanted, wanted
        computed = wanted & REGION_ATTRIBUTES
        return computed | self._query_relevance.mapped, computed

    def _fetch(self, slot: int, wanted: frozenset[int], stream: Stream) -> None:
        from pycuda import driver

        arrays = self._slots[slot]
        for host, array in zip((arrays.frame, arrays.changed, arrays.written, arrays.flow), self._read, strict=True):
            driver.memcpy_dtoh_async(host, array.pointer, stream)
        if self._own and self._pixel_attributes is not None:
            self._pixel_attributes.fetch(slot, stream, with_attributes=bool(wanted))

    def _enqueue_upload(self, computed: frozenset[int], stream: Stream) -> None:
        """Enqueue the upload of the coefficients that the host has computed."""
        for index in sorted(computed):
            self._upload[index] = self._query_relevance.coefficients[index]
            self._embeddings.part(index).copy_from(self._upload[index], stream)

    def _enqueue_relevance(self, terms: QueryTerms | None, stream: Stream) -> DeviceArray | None:
        if terms is None:
            return None
        if terms is not self._terms:
            self._relevance.upload(terms, stream)
            self._terms = terms
        self._relevance.enqueue(self._embeddings, self._combined, stream)
        return self._combined

    def extras(self, feedback: FrameFeedback) -> dict[str, Any]:
        """For the last frame's record; see QueryRelevance."""
        return self._query_relevance.extras(feedback)

    def map(self, name: str) -> Map:
        """The last frame's map "query" or "query:TEXT": float32[grid]."""
        return self._query_relevance.map(name)

    def close(self) -> None:
        """Stop the embedder's threads, and free the memory. Safe to call twice."""
        self._query_relevance.close()
        self._relevance.free()

    def _process(self, pending: _Pending) -> None:
        slot = self._slots[pending.slot]
        update = update_of(pending.frame, self._geometry, slot.frame, slot.changed, slot.written)
        changed = np.asarray(tiles_to_cells(update.changed), np.bool_)
        flow, valid = self._follow(update, changed, slot.flow)
        about = pending.frame, self._geometry, update.keyframe, changed
        maps = self._pixel_attributes.maps(pending.slot) if self._own and self._pixel_attributes is not None else {}
        self._query_relevance.update(EmbedderInput(*about, flow, valid, maps, pending.wanted))

    def _follow(self, update: Update, changed: Mask, flow: Map) -> tuple[Flow | None, Mask]:
        """The frame's flow, and the cells whose warped maps may be reused, by the same rule as carry.cu.

        None may with the attributes encoder, which warps no maps.
        """
        found, valid = None, np.zeros(self._geometry.grid, np.bool_)
        warps = self._caches and update.keyframe is None
        if warps and changed.any():
            dx, dy, confidence = flow
            if not self._dense_flow:
                dx, dy = (np.where(changed, each, np.float32(0)) for each in (dx, dy))
                confidence = np.where(changed, confidence, np.float32(1))
            found = Flow(dx, dy, confidence)
        if self._own:
            return found, valid
        if warps:
            valid = self._ages.warp(found)
        else:
            self._ages.clear()
        self._ages.advance_age(valid)
        return found, valid


def _slot(memory: Memory, arrays: tuple[DeviceArray, ...]) -> _Slot:
    return _Slot(*(memory.pinned(array.shape or (1,), array.dtype) for array in arrays))
