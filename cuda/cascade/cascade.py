"""The Cascade stage of the CUDA engine: from levels and channels to tokens, without leaving the GPU."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.allocation import Allocation
from foveate.cuda.cascade.arrays import MAPS, Arrays, allocate_arrays, allocate_reader
from foveate.cuda.cascade.carry import Carry
from foveate.cuda.cascade.clusters import Clusters
from foveate.cuda.cascade.emit import Emit
from foveate.cuda.cascade.flow import FlowSearch
from foveate.cuda.cascade.foveated import Foveated
from foveate.cuda.cascade.layout import CONCLUSION, TURN_OFFSET
from foveate.cuda.cascade.linear_scorer import linear
from foveate.cuda.cascade.maps import Maps
from foveate.cuda.cascade.rate_distortion import RateDistortion
from foveate.cuda.cascade.readback import Readback
from foveate.cuda.cascade.reader import Compare
from foveate.cuda.cascade.top_k import TopK
from foveate.cuda.cascade.upper import UpperLevels
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import FrameControls
from foveate.cuda.frames import AnyFrame
from foveate.cuda.query.device_query import DeviceQuery
from foveate.cuda.state import KEYFRAMES, PixelState
from foveate.pipeline.cascade.feedback import Feedback, FrameFeedback
from foveate.pipeline.cascade.rate_distortion import prices
from foveate.pipeline.cascade.strategies import top_lod
from foveate.pipeline.cascade.temporal import Temporal
from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.flow import Flow
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Selection

_NEVER, _ALWAYS, _WITHOUT_TOKENS = 0, 1, 2  # Conclusion.settles


class _QueryResult(NamedTuple):
    """Outcome of the queries for one frame."""

    participates: bool = False  # whether there is a participation
    extras: Mapping[str, Any] = MappingProxyType({})  # for the record


_NO_QUERY = _QueryResult()
_KINDS: Final[Mapping[str, type[RateDistortion | TopK | Foveated]]] = {
    "rate_distortion": RateDistortion,
    "foveated": Foveated,
}


class Step(Protocol):
    """One kernel, or a few that belong together."""

    def enqueue(self, stream: Stream) -> None:
        """This frame's work."""


class Cascade:
    """Chooses the tokens of a stream of frames of one size; see pipeline.cpu.cascade for what is computed.

    For each frame: ``begin``; then ``enqueue_early``, ``enqueue`` and ``fetch``, which a graph may replay; and once the
    copies have arrived, ``selection``. Each frame has a slot, so that one is read while the next one is computed.
    """

    def __init__(
        self,
        device: Device,
        pixels: PixelState,
        plan: StreamPlan,
        feedback: Feedback,
        stream: Stream,
        flow: Callable[[int], Flow | None] | None = None,
        debt: DeviceArray | None = None,
    ) -> None:
        """``flow`` gives the flow of a frame by its index, instead of the search; None where nothing moved.

        ``debt``, int32[1], is the stream's, in units: it outlasts this object. None where the budget is fixed.

        Raises EngineError where the card is full.
        """
        self._pixels = pixels
        self._plan, self._settings = plan, plan.settings
        self._feedback = feedback
        feedback.resend_gaze()
        self._flow = flow
        self._had_feedback = False
        self._frame_feedback = FrameFeedback(None, False, None)
        self._debt = debt
        self.device_query: DeviceQuery | None = None  # where there are queries, or their embeddings are kept
        self._memory = Memory(device)
        try:
            self._allocate(device, stream)
        except BaseException:
            self._memory.free()
            raise

    def _allocate(self, device: Device, stream: Stream) -> None:
        pixels, settings, memory = self._pixels, self._settings, self._memory
        self._arrays = arrays = allocate_arrays(memory, pixels, settings, stream)
        reader = allocate_reader(memory, pixels, stream) if settings.allocation.memory == "stream" else None
        self._readback = Readback(device, memory, arrays, settings, stream)
        searches = settings.cache.enabled and self._flow is None
        if self._plan.queries is not None:
            dense = self._flow is not None
            self.device_query = DeviceQuery(memory, pixels, arrays.flow, self._plan, self._plan.queries, dense, stream)
        conclusion = _conclusion(pixels, arrays, _NEVER if self.device_query else _settles(self._plan))
        weights = linear(memory, pixels, arrays, settings, self._plan.scorer, stream)
        self._carry = Carry(device, pixels, arrays, reader, settings, weights, self._flow is not None)
        self.early: tuple[Step, ...] = (
            *([Compare(device, pixels, arrays, reader, settings.change)] if reader else []),
            *([FlowSearch(device, pixels, arrays, settings.cache)] if searches else []),
        )
        self._upper = UpperLevels(device, pixels, arrays.upper, self._carry, settings.allocation.merge)
        given = Allocation(device, memory, pixels, arrays, settings, conclusion, self._debt, stream)
        self._strategy = _KINDS.get(settings.allocation.strategy, TopK)(given)
        self._top = TOP_LEVEL  # LOD of the coarsest tokens
        self._budget = 0  # that it is for
        self._emit = Emit(device, pixels, arrays, reader, settings)
        self._emit.resize(self._readback.room, self._readback.patches)
        self.steps: tuple[Step, ...] = (
            self._carry,
            self._upper,
            Clusters(device, memory, pixels, arrays, stream),
            self._strategy,
            self._emit,
        )
        self._maps = Maps(memory, pixels, arrays, settings, self.device_query)
        self._query_results: dict[int, _QueryResult] = {}  # by slot
        self._upload_gaze(None, stream)

    def begin(self, index: int, stream: Stream) -> FrameControls:
        """Take the feedback since the last frame. Another budget may change the ``graph_key``."""
        feedback = self._feedback.take(self._pixels.geometry)
        if self._readback.make_room(self._settings.allocation.most(feedback.budget or 0), stream):
            self._emit.resize(self._readback.room, self._readback.patches)
        self._set_budget(feedback.budget or self._settings.rate)
        if feedback.anything or self._had_feedback:
            self._apply_feedback(feedback, stream)
        self._had_feedback = feedback.anything
        self._frame_feedback = feedback
        flow = self._flow(index) if self._flow else None
        if flow is not None:
            self._arrays.flow.upload(np.stack(flow).astype(np.float32), stream)
        return FrameControls(feedback.anything, feedback.budget)

    def enqueue_early(self, stream: Stream) -> None:
        """The frame's kernels that need its levels, but neither its channels nor its edge distance: ``early``."""
        for step in self.early:
            step.enqueue(stream)

    def enqueue(self, frame: AnyFrame | None, slot: int, stream: Stream) -> None:
        """The frame's other kernels: ``steps``, behind those of ``enqueue_early``.

        Neither allocates nor waits, but for queries, which need the ``frame`` itself.
        """
        if self.device_query is not None:
            assert frame is not None
            self._enqueue_query(self.device_query, frame, slot, stream)
        for step in self.steps:
            step.enqueue(stream)

    def _enqueue_query(self, query: DeviceQuery, frame: AnyFrame, slot: int, stream: Stream) -> None:
        participation = query.enqueue(frame, self._frame_feedback, slot, stream)
        self._carry.set_participation(participation, self._frame_feedback.query_changed)
        if isinstance(self._strategy, Foveated):
            self._strategy.set_participation(participation)
        self._emit.set_participation(participation)
        self._maps.keep_query_maps(slot)
        self._query_results[slot] = _QueryResult(participation is not None, query.extras(self._frame_feedback))

    def fetch(self, slot: int, stream: Stream) -> None:
        """Enqueue the copies of the frame's record and of requested maps and patches into ``slot``."""
        self._readback.fetch(slot, stream)
        self._maps.fetch(slot, stream)

    def export_patches(self, slot: int, stream: Stream) -> None:
        """Enqueue the copy of the patches that the Selection exports, after ``fetch``; not captured."""
        self._readback.export_patches(slot, stream)

    def selection(self, frame: AnyFrame, slot: int) -> Selection:
        """The Selection of ``frame``, whose copies have arrived in ``slot``. It refers to nothing in the slot."""
        (count, changed, keyframe, recomputed, _, _, price, debt, turn), columns = self._readback.record(slot)
        x, y, age, score, information, perspective, participation, lod, fresh = columns
        query, geometry = self._query_results.get(slot, _NO_QUERY), self._pixels.geometry
        owed = {} if self._debt is None else {"debt": debt, "price": float(prices()[price])}
        if self.device_query is not None:
            self.device_query.finish(slot)
        selection = Selection(
            index=frame.index,
            time=frame.time,
            width=frame.width,
            height=frame.height,
            keyframe=KEYFRAMES[keyframe],
            changed=changed / self._pixels.changed.nbytes,
            recomputed=recomputed / geometry.cells,
            x=x,
            y=y,
            lod=lod,
            score=score,
            information=information,
            perspective=perspective,
            participation=participation if query.participates else None,
            age=age,
            fresh=fresh,
            patches=self._readback.host_patches(slot, count),
            device_patches=self._readback.device_patches(slot, count),
            maps=self._maps.read(slot, turn),
            extras={**query.extras, **owed},
        )
        self._feedback.remember(selection, geometry)
        return selection

    def channels(self) -> dict[str, DeviceArray]:
        """The channels kept here, by name: float32[grid], or float32[turns, grid] of which one is this frame's."""
        arrays = self._arrays
        warped: dict[str, DeviceArray] = {name: arrays.warped(name) for name in MAPS if name in BY_NAME}
        own = {"eccentricity": arrays.eccentricity, "gaze": arrays.gaze, "prev_attention": arrays.prev_attention}
        return {**warped, **own, **(self.device_query.channels() if self.device_query else {})}

    @property
    def graph_key(self) -> tuple[int, int] | None:
        """Room for tokens, and LOD of the coarsest ones; None with queries. See format_session.Selector."""
        return None if self.device_query else (self._readback.room, self._top)

    @property
    def flow(self) -> DeviceArray:
        """float32[3, grid]: dx, dy and confidence of the last frame that changed anything and was no keyframe."""
        return self._arrays.flow

    @property
    def turn(self) -> int:
        """Address of an int32 on the device: which of the two maps of a channel with two is this frame's."""
        return self._arrays.cascade.pointer + TURN_OFFSET

    def report(self) -> tuple[tuple[str, int], ...]:
        """Names and sizes in bytes of what was allocated."""
        return self._memory.report()

    def free(self) -> None:
        """Free all memory. Nothing enqueued may still run."""
        if self.device_query is not None:
            self.device_query.close()
        self._readback.free()
        self._memory.free()

    def _set_budget(self, budget: int) -> None:
        """Set the LOD of the coarsest tokens, which small budgets need."""
        if budget == self._budget:
            return
        self._budget = budget
        top = top_lod(self._settings.allocation, self._pixels.geometry, budget)
        if top != self._top:
            self._top = top
            self._upper.set_top(top)
            self._strategy.set_top(top)
            self._emit.set_top(top)

    def _apply_feedback(self, feedback: FrameFeedback, stream: Stream) -> None:
        arrays = self._arrays
        arrays.feedback.fill(int(feedback.anything), stream)
        arrays.gaze_input.fill(0, stream)
        arrays.attention_input.fill(0, stream)
        if feedback.gaze_moved:
            self._upload_gaze(feedback.gaze, stream)
        if feedback.attention is not None:
            arrays.attention_input.upload(feedback.attention, stream)

    def _upload_gaze(self, point: tuple[float, float] | None, stream: Stream) -> None:
        """Upload eccentricity and gaze, as Temporal has them for the first look at ``point``."""
        temporal = Temporal(self._pixels.geometry, self._settings.cache, frozenset())
        temporal.apply(FrameFeedback(point, True, None))
        self._arrays.has_gaze.fill(int(point is not None), stream)
        if point is not None:
            self._arrays.gaze_point.upload(np.array(point, np.float64), stream)
        self._arrays.eccentricity.upload(temporal.eccentricity, stream)
        self._arrays.gaze_input.upload(temporal.channel("gaze"), stream)


def _conclusion(pixels: PixelState, arrays: Arrays, settles: int) -> NDArray[np.void]:
    """The struct Conclusion."""
    conclusion = np.zeros((), CONCLUSION)
    conclusion["frame"], conclusion["cascade"] = pixels.frame.pointer, arrays.cascade.pointer
    conclusion["header"], conclusion["feedback"] = arrays.header.pointer, arrays.feedback.pointer
    conclusion["settles"] = settles
    return conclusion


def _settles(plan: StreamPlan) -> int:
    """When an unchanged frame gets the last Selection again."""
    used = {*plan.settings.maps, *(plan.scorer.channels if plan.scorer else ())}
    if any(BY_NAME[name].group in ("temporal", "feedback") for name in used if name in BY_NAME):
        return _NEVER  # these change even where the picture does not
    return _WITHOUT_TOKENS if plan.settings.allocation.memory == "stream" else _ALWAYS
