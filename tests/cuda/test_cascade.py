"""The Cascade's kernels against the CPU engine: the same levels and channels fed to both, frame by frame."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.cascade import flow_reference
from foveate.cuda.cascade.cascade import Cascade
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.frame_input import FrameControls
from foveate.cuda.kernel_support import missing_kernels
from foveate.cuda.state import FRAME_STATE, GRID_CHANNELS, KEYFRAMES, PixelState, PlaneLevels
from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.flow import FlowSearch
from foveate.pipeline.cpu.levels import PlanePyramid
from foveate.pipeline.cpu.pyramid import State, pyramid
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.geometry import TOP_LEVEL
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.relevance.stream_query import compile_queries
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources import open_source
from tests.trials import on_card, seeds, trial

pytestmark = pytest.mark.gpu

SCORE_ERROR = 2e-6
"""Scores of a frame follow from the same channels by the same additions; means over a token add in another order, and a
warped score is interpolated in another order. Worst seen: see the test's output."""


class Loaded:
    """A PixelState on the device with what a State of the CPU engine holds."""

    def __init__(self, memory: Memory, stream: Stream, state: State) -> None:
        geometry, frame = state.update.geometry, state.update.frame
        self._memory, self._stream = memory, stream
        tiles, grid = geometry.tiles, geometry.grid
        self.number = 0
        luma, cb, cr = (self._plane(plane) for plane in state.levels.planes)
        self.pixels = PixelState(
            geometry=geometry,
            colour=frame.colour,
            subsampled=frame.subsampled,
            frame=memory.array("frame", (), FRAME_STATE, stream),
            changed=memory.array("changed", tiles, np.uint8, stream),
            dirty=memory.array("dirty", (tiles[0] * tiles[1],), np.int32, stream),
            written=memory.array("written", tiles, np.uint8, stream),
            planes=(luma, cb, cr),
            errors=memory.array("errors", (4, *grid), np.float32, stream),
            channels=memory.array("channels", (len(GRID_CHANNELS), *grid), np.float32, stream),
        )

    def _plane(self, plane: PlanePyramid) -> PlaneLevels:
        arrays = [self._memory.array("pixels", plane.pixels.shape, np.uint8, self._stream)]
        arrays += [self._memory.array("level", level.shape, np.float32, self._stream) for level in plane.coarse]
        return PlaneLevels(plane.base, tuple(arrays))

    def load(self, state: State, controls: FrameControls) -> None:
        """Bring everything over."""
        pixels, update = self.pixels, state.update
        for ours, theirs in zip(pixels.planes, state.levels.planes, strict=True):
            ours.levels[0].upload(theirs.pixels, self._stream)
            for level, values in zip(ours.levels[1:], theirs.coarse, strict=True):
                level.upload(values, self._stream)
        pixels.errors.upload(np.stack(state.errors), self._stream)
        pixels.channels.upload(np.stack([state.grid[name] for name in GRID_CHANNELS]), self._stream)
        pixels.changed.upload(update.changed.astype(np.uint8), self._stream)
        pixels.written.upload(update.written.astype(np.uint8), self._stream)
        dirty = np.zeros(pixels.dirty.shape, np.int32)
        places = np.flatnonzero(update.written)
        dirty[: len(places)] = places
        pixels.dirty.upload(dirty, self._stream)
        frame = pixels.frame.download(self._stream)
        frame["number"] = self.number
        frame["changed_count"] = update.changed.sum()
        frame["dirty_count"] = update.written.sum()
        frame["keyframe"] = KEYFRAMES.index(update.keyframe)
        frame["new_scene"] = update.new_scene
        frame["unchanged"] = frame["settled"] and not controls.feedback and not update.written.any()
        frame["noise"] = update.noise
        frame["budget"] = controls.budget or 0
        pixels.frame.upload(frame, self._stream)
        self.number += 1


class Pair:
    """Both Cascades over the same States, with the same flow: what the CPU's search finds is given to the GPU."""

    def __init__(self, device: Device, memory: Memory, stream: Stream, settings: Settings, given: bool = True) -> None:
        self._given = given
        self.stream = stream
        self.pictures: list[tuple[NDArray[np.float32], NDArray[np.float32]]] = []  # luma of level 4, of the flow level
        self._device, self._memory, self._stream = device, memory, stream
        self._settings = settings
        self.plan = plan_stream(settings)
        rated = settings.allocation.budget_average is not None
        self._debt = memory.array("debt", (1,), np.int32, stream) if rated else None
        self.ours, self.theirs = Feedback(), Feedback()
        self._flow: Flow | None = None
        self.cascade: Cascade | None = None
        self._loaded: Loaded | None = None

    def run(self, frames: Iterator[Frame], behind: int = 0) -> Iterator[tuple[Selection, Selection]]:
        """Yield the GPU's and the CPU's Selection of each frame, once the next ``behind`` are enqueued: 0 or 1."""
        states: list[State] = []
        enqueued: list[tuple[Frame, int, Selection]] = []
        steps = cascade(self._tapped(frames, states), self.plan, self.theirs)
        for slot, step in zip(itertools.cycle(range(2)), steps, strict=False):
            enqueued.append((self._enqueue(states.pop(), slot), slot, step.selection))
            if len(enqueued) > behind:
                yield self._finish(*enqueued.pop(0))
        for each in enqueued:
            yield self._finish(*each)

    def _tapped(self, frames: Iterator[Frame], states: list[State]) -> Iterator[State]:
        for state in pyramid(upload(frames, self._settings.change), self.plan, 1):
            states.append(state)
            luma, level = state.levels.luma, self._settings.cache.flow_level
            self.pictures.append((luma.level(TOP_LEVEL).copy(), luma.level(level).copy()))
            self._flow = None
            yield state

    def found(self, flow: Flow | None) -> None:
        """Told by the CPU's search."""
        self._flow = flow

    def _enqueue(self, state: State, slot: int) -> Frame:
        if self.cascade is None or self._loaded is None or state.update.keyframe == "size":
            self.free()
            self._loaded = Loaded(self._memory, self._stream, state)
            arguments = self._device, self._loaded.pixels, self.plan, self.ours, self._stream
            flow = (lambda _: self._flow) if self._given else None
            self.cascade = Cascade(*arguments, flow=flow, debt=self._debt)
        frame = state.update.frame
        self._loaded.load(state, self.cascade.begin(frame.index, self._stream))
        self.cascade.enqueue_early(self._stream)
        self.cascade.enqueue(frame, slot, self._stream)
        self.cascade.fetch(slot, self._stream)
        return frame

    def _finish(self, frame: Frame, slot: int, theirs: Selection) -> tuple[Selection, Selection]:
        assert self.cascade is not None
        self._stream.synchronize()
        return self.cascade.selection(frame, slot), theirs

    def free(self) -> None:
        """Give the device memory back."""
        if self.cascade is not None:
            self._device.synchronize()
            self.cascade.free()


@pytest.fixture
def pairs(device: Device, memory: Memory, stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Makes a Pair for settings."""
    made: list[Pair] = []
    search = FlowSearch.search

    def told(self: FlowSearch, *arguments: Any) -> Flow | None:
        flow = search(self, *arguments)
        made[-1].found(flow)
        return flow

    def make(settings: Settings, given: bool = True) -> Pair:
        made.append(Pair(device, memory, stream, settings, given))
        return made[-1]

    monkeypatch.setattr(FlowSearch, "search", told)
    yield make
    for pair in made:
        pair.free()


def stirred(height: int, width: int, count: int, kind: str = "420") -> Iterator[Frame]:
    """Moving texture, a pause of several frames, a cut, and a moving patch."""
    rng = np.random.default_rng(height * 10_000 + width)
    half = -(-height // 2), -(-width // 2)
    size = half if kind == "420" else (height, width)
    big = _texture(rng, height + 64, width + 64)
    chroma = _texture(rng, *size), _texture(rng, *size)
    for index in range(count):
        shift = min(index, 3) * 3
        if index == 8:
            big = 255 - big[::-1, ::-1] // 2
        luma = big[shift : shift + height, shift : shift + width].copy()
        if index > 8:
            side = min(40, height, width)
            left = (index * 7) % max(width - side, 1)
            luma[:side, left : left + side] = _texture(np.random.default_rng(5), side, side)
        yield Frame(index, index / 25, luma, None if kind == "grey" else chroma, Colour())


def _texture(rng: np.random.Generator, height: int, width: int) -> NDArray[np.uint8]:
    coarse = rng.integers(40, 220, (height // 12 + 2, width // 12 + 2)).repeat(12, 0).repeat(12, 1)
    fine = rng.integers(-12, 13, (height, width)) * (coarse[:height, :width] > 120)
    return np.clip(coarse[:height, :width] + fine, 0, 255).astype(np.uint8)


def agree(ours: Selection, theirs: Selection, name: str) -> None:
    """The same tokens, with the same figures up to the order of additions."""
    assert ours.keyframe == theirs.keyframe, name
    for field in ("lod", "x", "y", "age", "fresh"):
        np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field), f"{name}: {field}")
    assert ours.changed == pytest.approx(theirs.changed), name
    assert ours.recomputed == pytest.approx(theirs.recomputed), name
    for field in ("score", "information", "perspective"):
        np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), atol=SCORE_ERROR, err_msg=name)
    assert (ours.patches is None) == (theirs.patches is None), name
    if ours.patches is not None and theirs.patches is not None:
        apart = np.abs(ours.patches.astype(int) - theirs.patches).max(initial=0)
        assert apart <= 1, name  # a tie rounds either way


MERGES = (1, 2, 3)
MEMORIES = ("frame", "stream")


def case(height: int, width: int, count: int, settings: dict[str, Any], kind: str = "420", slow: bool = False) -> Any:
    """``count`` stirred frames, and settings."""
    return pytest.param(height, width, count, settings, kind, marks=[pytest.mark.slow] if slow else [])


SIZES = [  # odd ones, pauses, a cut
    case(
        height,
        width,
        14,
        {"budget": 40, "allocation": {"memory": memory, "merge": merge}, "change": {"keyframe_interval": 6}},
    )
    for height, width in ((1, 1), (40, 33), (97, 131), (160, 290), (288, 544))
    for merge in MERGES
    for memory in MEMORIES
]
LARGE = [  # more nodes than threads in every kernel
    case(2160, 3840, 3, {"budget": 1500, "allocation": {"memory": memory}}, slow=True) for memory in MEMORIES
]
PRICES = [  # fewer tokens than roots, and more than anything is worth
    case(160, 544, 4, {"budget": budget, "allocation": {"min_gain": gain}})
    for budget in (1, 7, 4000)
    for gain in (0.0, 64.0, 1e5)
]
BICUBIC = [  # the reader's picture decides the later frames; the last size has tokens above LOD 4
    case(height, width, 12, {"budget": budget, "allocation": {"memory": "stream", "interpolation": "bicubic"}})
    for height, width, budget in ((97, 131, 12), (288, 544, 40), (700, 1090, 6))
]
SAMPLINGS = [  # patches and the reader's picture, also at LODs above 4
    case(height, width, count, {"budget": budget, "patches": True, "allocation": {"memory": "stream"}}, kind)
    for height, width, count, budget in ((97, 131, 11, 30), (300, 700, 4, 2))
    for kind in ("grey", "444")
]
THREE_STAGE = [  # all three culls have something to cull
    case(720, 1296, 3, {"budget": 50, "allocation": {"strategy": "three_stage", "merge": merge}}) for merge in MERGES
]
THREE_STAGE_IN_STREAM = [  # where the reader lacks most: through a cut, which begins with the score, and pauses
    case(
        height,
        width,
        14,
        {
            "budget": budget,
            "query": query,
            "allocation": {"strategy": "three_stage", "memory": "stream", "merge": merge},
        },
    )
    for height, width, budget in ((40, 33, 9), (97, 131, 12), (290, 820, 200))
    for merge in MERGES
    for query in ((), ("dark", "-left:0.5"))
]
RANKED = [  # all culls of five_stage have something to cull, and adaptive keeps fewer cells than the budget
    case(
        720,
        1296,
        2,
        {"budget": 450, "allocation": {"strategy": strategy, "merge": merge, "share": share}},
    )
    for strategy, share in (("five_stage", 1), ("soft", 1), ("adaptive", 0.4), ("adaptive", 0.02), ("adaptive", 1))
    for merge in MERGES
]
RANKED_LARGE = [  # more than the 5,000 cells that five_stage's second stage keeps
    case(1440, 2000, 2, {"budget": 300, "allocation": {"strategy": strategy}}, slow=True)
    for strategy in ("five_stage", "adaptive")
]
RANKED_IN_STREAM = [
    case(
        97,
        131,
        14,
        {"budget": 12, "allocation": {"strategy": strategy, "memory": "stream", "merge": merge, "share": share}},
    )
    for strategy, share in (("five_stage", 1), ("soft", 1), ("adaptive", 0.3), ("adaptive", 0.95))
    for merge in MERGES
]
FOVEATED = [  # odd sizes, a cut, pauses; M0 that leaves tokens over; budgets down to one token above the roots
    case(
        height,
        width,
        14,
        {
            "budget": budget,
            "query": query,
            "allocation": {"strategy": "foveated", "memory": memory, "merge": merge, "m0": m0},
            "change": {"keyframe_interval": 6},
        },
    )
    for height, width, budget, m0, query in (
        (1, 1, 9, None, ()),
        (97, 131, 30, None, ("dark", "-left:0.5")),
        (290, 820, 90, None, ()),
        (290, 820, 200, 0.2, ()),
        (700, 1090, 18, None, ()),
    )
    for merge in MERGES
    for memory in MEMORIES
]
SWITCHES = [  # what can be switched off
    case(97, 290, 11, {"budget": 60, **changes})
    for changes in ({"cache": {"enabled": False}}, {"score": {"enabled": True}}, {"cache": {"max_age": 2}})
]


@pytest.mark.parametrize(
    ("height", "width", "count", "settings", "kind"),
    [
        *SIZES,
        *LARGE,
        *PRICES,
        *BICUBIC,
        *SAMPLINGS,
        *THREE_STAGE,
        *THREE_STAGE_IN_STREAM,
        *RANKED,
        *RANKED_LARGE,
        *RANKED_IN_STREAM,
        *SWITCHES,
    ],
)
def test_tokens_equal_the_cpu_engines(
    pairs: Any, height: int, width: int, count: int, settings: dict[str, Any], kind: str
) -> None:
    checked = Settings.model_validate(settings)
    for ours, theirs in pairs(checked).run(stirred(height, width, count, kind)):
        assert len(ours) <= checked.budget
        assert (ours.patches is not None) == checked.patches
        agree(ours, theirs, f"frame {ours.index}")


WEIGHTS = """
bias = 0.03
[weights]
attention = 0.21
eccentricity = -0.11
edge_distance = -0.07
edges = 0.31
edges_inverted = -0.13
fixation = 0.17
gaze = 0.4
highpass = 0.9
lowpass = -0.05
motion = 0.25
prev_attention = 0.19
prev_relevance = 0.15
prev_saliency = 0.23
saliency = 0.6
x = 0.1
y = -0.2
"""


@pytest.mark.parametrize("memory_of", MEMORIES)
@pytest.mark.parametrize(("strategy", "merge"), [("rate_distortion", 1), ("rate_distortion", 2), ("soft", 1)])
@pytest.mark.parametrize("query", [(), ("dark",)])
def test_the_linear_scorer(
    pairs: Any, strategy: str, merge: int, memory_of: str, query: tuple[str, ...], tmp_path: Path
) -> None:
    """Every channel that the card weighs, with feedback, through pauses and a cut; scores are those of the CPU."""
    weights = tmp_path / "weights.toml"
    weights.write_text(WEIGHTS)
    settings = Settings(
        budget=40,
        query=query,
        maps=("score",),
        score={"scorer": "linear", "weights": str(weights), "enabled": True},
        allocation={"strategy": strategy, "memory": memory_of, "merge": merge},
    )
    pair = pairs(settings)
    spread = []
    for ours, theirs in pair.run(stirred(97, 290, 14)):
        agree(ours, theirs, f"frame {ours.index}")
        np.testing.assert_allclose(ours.maps["score"], theirs.maps["score"], atol=MAP_ERROR)
        spread.append(np.ptp(ours.maps["score"]))
        for feedback in (pair.ours, pair.theirs):
            if ours.index == 2:
                feedback.set_gaze((200.0, 30.0))
            if ours.index == 4:
                feedback.add_attention(4, np.linspace(0, 1, len(theirs), dtype=np.float32))
    assert min(spread) > 0.1  # else all scores were clipped


def check_coarse(pairs: Any, height: int, width: int, count: int, **options: Any) -> None:
    """Both engines give the same tokens and pixels, which cover the first frame, where LOD 4 is too fine."""
    options = {"patches": True, "change": {"keyframe_interval": 3}, **options}
    for ours, theirs in pairs(Settings(**options)).run(stirred(height, width, count)):
        assert ours.patches is not None
        agree(ours, theirs, f"frame {ours.index}")
        if ours.index == 0:
            seen = np.zeros((-(-height // 16), -(-width // 16)), np.bool_)
            for x, y, lod in zip(ours.x.tolist(), ours.y.tolist(), ours.lod.tolist(), strict=True):
                top, left = (y - (8 << lod)) // 16, (x - (8 << lod)) // 16
                seen[top : top + (1 << lod), left : left + (1 << lod)] = True
            assert seen.all()
            assert ours.lod.max() > 4


@pytest.mark.parametrize("memory_of", ["frame", "stream"])
@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize(
    ("height", "width", "units"), [(290, 820, 1), (290, 820, 5), (700, 1090, 3), (33, 2100, 2), (1300, 1030, 7)]
)
def test_tokens_coarser_than_the_roots(
    pairs: Any, height: int, width: int, units: int, merge: int, memory_of: str
) -> None:
    """Budgets below the number of roots, down to one token or group, at odd sizes; LODs up to 7."""
    if -(-height // (256 * merge)) * -(-width // (256 * merge)) <= units:
        pytest.skip("there are enough tokens of LOD 4")
    allocation = {"memory": memory_of, "merge": merge}
    check_coarse(pairs, height, width, 5, budget=units * merge**2, allocation=allocation)


@pytest.mark.parametrize("memory_of", ["frame", "stream"])
def test_coarse_tokens_with_a_query(pairs: Any, memory_of: str) -> None:
    """What a query may find hidden counts at the upper levels as well."""
    allocation = {"memory": memory_of}
    check_coarse(pairs, 700, 1090, 5, budget=6, query=("dark", "-left:0.5"), allocation=allocation)


@pytest.mark.slow
@pytest.mark.parametrize("memory_of", ["frame", "stream"])
@pytest.mark.parametrize(
    ("height", "width", "budget", "merge"),
    [
        (4320, 7680, 273, 1),
        (4320, 7680, 273, 2),
        (4320, 7680, 273, 3),
        (2160, 3840, 100, 1),
        (3400, 6000, 273, 1),
        (4097, 8191, 1, 1),
    ],
)
def test_large_pictures_are_covered(
    pairs: Any, height: int, width: int, budget: int, merge: int, memory_of: str
) -> None:
    """8K, and UHD with few tokens: more roots than tokens."""
    allocation = {"memory": memory_of, "merge": merge}
    check_coarse(pairs, height, width, 2, budget=budget, allocation=allocation)


@pytest.mark.parametrize("strategy", ["rate_distortion", "three_stage", "adaptive", "foveated"])
@pytest.mark.parametrize("merge", [1, 2, 3])
def test_another_budget_mid_stream(pairs: Any, strategy: str, merge: int) -> None:
    """More tokens than there was room for, all cells, and fewer than there are roots; patches follow."""
    budgets = {2: 130, 4: 8000, 6: max(8, merge**2), 9: 60}
    settings = Settings(budget=40, patches=True, allocation={"strategy": strategy, "merge": merge})
    pair = pairs(settings)
    most = settings.budget
    for ours, theirs in pair.run(stirred(290, 820, 12)):
        assert len(ours) <= most
        assert ours.patches is not None
        agree(ours, theirs, f"frame {ours.index}")
        if ours.index in budgets:
            most = budgets[ours.index]
            for feedback in (pair.ours, pair.theirs):
                feedback.set_budget(most)


@pytest.mark.parametrize("memory_of", MEMORIES)
@pytest.mark.parametrize("merge", MERGES)
def test_foveated_follows_the_gaze(pairs: Any, merge: int, memory_of: str) -> None:
    """And goes back to what the query finds, and to the centre, when there is neither."""
    allocation = {"strategy": "foveated", "memory": memory_of, "merge": merge}
    pair = pairs(Settings(budget=90, query=("dark",), allocation=allocation))
    gazes = {1: (3.7, 300.2), 3: (401.25, 17.0), 5: (-2000.0, 5000.0), 7: None}
    chosen = set()
    for ours, theirs in pair.run(stirred(290, 820, 12)):
        agree(ours, theirs, f"frame {ours.index}")
        chosen.add((ours.x.tobytes(), ours.y.tobytes(), ours.lod.tobytes()))
        for feedback in (pair.ours, pair.theirs):
            if ours.index in gazes:
                feedback.set_gaze(gazes[ours.index])
            if ours.index == 9:
                feedback.set_query((), None)
    assert len(chosen) >= 4


def owe_the_same(ours: Selection, theirs: Selection) -> None:
    """Debt and price are integers, and places on one lattice."""
    assert ours.extras == theirs.extras
    assert set(ours.extras) == {"debt", "price"}


@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize(("height", "width"), [(40, 33), (160, 290), (290, 820)])
@pytest.mark.parametrize("average", [9, 30])
def test_a_budget_that_is_an_average(pairs: Any, height: int, width: int, average: int, merge: int) -> None:
    """Through cuts, keyframes, rest and averages that rise and fall; some below the number of roots."""
    allocation = {"memory": "stream", "merge": merge, "budget_average": average, "burst": 3.5}
    pair = pairs(Settings(allocation=allocation, change={"keyframe_interval": 5}))
    averages = {3: 200, 5: 9, 9: 41}
    for ours, theirs in pair.run(stirred(height, width, 14)):
        agree(ours, theirs, f"frame {ours.index}")
        owe_the_same(ours, theirs)
        if ours.index in averages:
            for feedback in (pair.ours, pair.theirs):
                feedback.set_budget(averages[ours.index])


def test_the_debt_outlasts_a_change_of_size(pairs: Any) -> None:
    """The first frame of another size may not spend as if nothing had been."""
    settings = Settings(allocation={"memory": "stream", "budget_average": 12})
    frames = itertools.chain(stirred(160, 290, 2), stirred(192, 320, 9))
    owed = 0
    for ours, theirs in pairs(settings).run(replace(frame, index=index) for index, frame in enumerate(frames)):
        agree(ours, theirs, f"frame {ours.index}")
        owe_the_same(ours, theirs)
        assert len(ours) <= min(4 * 12, 12 + 7 * 12 - owed)
        owed = max(0, owed + len(ours) - 12)
        assert ours.extras["debt"] == owed


FLOW_ERROR = 0.02
"""Cells. Sums over a patch add in another order, which a search in flat content amplifies."""


@pytest.mark.parametrize("level", [2, 3])
@pytest.mark.parametrize(("height", "width"), [(40, 33), (97, 131), (288, 544)])
def test_search_equals_its_reference(pairs: Any, height: int, width: int, level: int) -> None:
    """Of the changed cells, all but a few whose search was near one of its limits."""
    pair = pairs(Settings(cache={"flow_level": level}), given=False)
    compared = 0
    for ours, _ in pair.run(stirred(height, width, 4)):
        if ours.keyframe is None and ours.changed == 1:
            (coarse, fine), (coarse_now, fine_now) = pair.pictures[-2:]
            expected = np.stack(flow_reference.flow((coarse, coarse_now), (fine, fine_now), level))
            away = np.abs(pair.cascade.flow.download(pair.stream) - expected).max(axis=0)
            assert (away > FLOW_ERROR).mean() < 0.02
            compared += 1
    assert compared


@pytest.mark.parametrize("shift", [(0, 5), (9, -13), (-30, 22)])
def test_search_finds_a_known_motion(pairs: Any, shift: tuple[int, int]) -> None:
    """A smooth texture that moves as a whole, by parts of a cell and by more than one."""
    rng = np.random.default_rng(3)
    blurred = cv2.GaussianBlur(rng.integers(0, 256, (420, 620)).astype(np.float32), None, 24)
    picture = np.clip((blurred - blurred.mean()) / blurred.std() * 40 + 128, 0, 255).astype(np.uint8)

    def frames() -> Iterator[Frame]:
        for index in range(2):
            top, left = 50 + shift[0] * index, 50 + shift[1] * index
            yield Frame(index, index / 25, picture[top : top + 320, left : left + 512].copy(), None)

    pair = pairs(Settings(), given=False)
    assert len(list(pair.run(frames()))) == 2
    dx, dy, confidence = pair.cascade.flow.download(pair.stream)
    inner = np.s_[4:-4, 4:-4]
    # Content at (y, x) of the second frame was at (y + shift) of the first: in cells, shift / 16.
    assert np.median(np.abs(dy[inner] - shift[0] / 16)) < 0.05
    assert np.median(np.abs(dx[inner] - shift[1] / 16)) < 0.05
    assert np.median(confidence[inner]) > 0.7


LINEAR = ("score", "edges", "red", "x", "y", "eccentricity", "prev_saliency", "fixation", "gaze", "attention")
MAP_ERROR = 1e-5
"""A warped map is interpolated in another order of additions, and fixation adds that up over frames."""


def test_maps_and_feedback(pairs: Any) -> None:
    """Gaze and attention fed in, and the maps that come of them."""
    settings = Settings(budget=40, maps=(*LINEAR, "prev_attention", "prev_relevance"))
    pair = pairs(settings)
    for ours, theirs in pair.run(stirred(97, 290, 12)):
        agree(ours, theirs, f"frame {ours.index}")
        for name, values in theirs.maps.items():
            np.testing.assert_allclose(ours.maps[name], values, atol=MAP_ERROR, err_msg=f"{name}, {ours.index}")
        for feedback in (pair.ours, pair.theirs):
            if ours.index in (2, 6):
                feedback.set_gaze((200.0, 30.0))
            if ours.index == 4:
                feedback.add_attention(4, np.linspace(0, 1, len(theirs), dtype=np.float32))
            if ours.index == 9:
                feedback.set_gaze(None)


CLUSTERS = ("cluster_id", "cluster_distance", "cluster_size", "boundary")


def test_clusters(pairs: Any) -> None:
    """Nearly all cells get the CPU's label. OpenCV takes Lab from a table, and a small change moves borders."""
    settings = Settings(budget=40, maps=CLUSTERS)
    for ours, theirs in pairs(settings).run(stirred(288, 544, 5)):
        same = ours.maps["cluster_id"] == theirs.maps["cluster_id"]
        assert same.mean() > 0.95
        away = np.abs(ours.maps["cluster_distance"] - theirs.maps["cluster_distance"])[same]
        assert np.median(away) < 0.01  # of half the diagonal: a few cells more or less move a centroid


@pytest.mark.slow
@pytest.mark.parametrize("memory_of", ["frame", "stream"])
@pytest.mark.parametrize("clip", ["bunny", "pedestrians", "tree"])
def test_real_clips(pairs: Any, samples: Path, clip: str, memory_of: str) -> None:
    """The tokens of real clips: 99% at least are the CPU engine's."""
    settings = Settings(source={"frames": 12}, allocation={"memory": memory_of})
    source = open_source(str(samples / f"{clip}.mp4"), settings.source)
    missing = total = 0
    try:
        for ours, theirs in pairs(settings).run(iter(source)):
            mine = set(zip(ours.lod.tolist(), ours.x.tolist(), ours.y.tolist(), strict=True))
            wanted = zip(theirs.lod.tolist(), theirs.x.tolist(), theirs.y.tolist(), strict=True)
            missing += sum(key not in mine for key in wanted)
            total += len(theirs)
    finally:
        source.close()
    print(f"{clip}, {memory_of}: {missing} of {total} tokens differ")
    assert missing <= 0.01 * total


@pytest.mark.parametrize("reader", ["frame", "stream"])
@pytest.mark.parametrize("merge", [1, 2, 3])
def test_queries(reader: Any, merge: Any, pairs: Any) -> None:
    """Asked from the start, asked something else, and nothing any more: the same tokens, participation and maps."""
    names = ("query", "query:moving", "clip11", "text")
    allocation = {"memory": reader, "merge": merge}
    pair = pairs(Settings(budget=60, query=("dark", "-left:0.5"), maps=names, allocation=allocation))
    programs = {4: compile_queries(AttributesEncoder(), ["moving", "bright"]).terms, 8: None}
    for index, (mine, cpu) in enumerate(pair.run(stirred(290, 330, 12))):
        assert (mine.participation is None) == (cpu.participation is None) == (index > 8)
        assert (mine.x.tolist(), mine.y.tolist(), mine.lod.tolist()) == (
            cpu.x.tolist(),
            cpu.y.tolist(),
            cpu.lod.tolist(),
        )
        for name in ("score", "information", "perspective", *(["participation"] if index <= 8 else [])):
            np.testing.assert_allclose(getattr(mine, name), getattr(cpu, name), atol=1e-5, err_msg=name)
        for name in names:
            np.testing.assert_allclose(mine.maps[name], cpu.maps[name], atol=1e-5, err_msg=name)
        assert mine.extras == cpu.extras
        if index in programs:
            for feedback in (pair.ours, pair.theirs):
                feedback.set_query(("moving", "bright") if programs[index] else (), programs[index])


@pytest.mark.parametrize("behind", [0, 1])
def test_motion_is_known_when_it_is_asked_for(behind: int, pairs: Any) -> None:
    """Between queries for which no frame waits for the host come some for which it does."""
    asks = {2: ["moving"], 4: ["green", "left"], 5: ["small"], 6: ["bright"], 10: ["large moving"], 12: []}
    asks[13] = ["moving"]
    pair, encoder, relevant = pairs(Settings(budget=60, query=("dark",))), AttributesEncoder(), set()
    for index, (mine, cpu) in enumerate(pair.run(stirred(290, 330, 20), behind)):
        for name in ("x", "y", "lod", "age"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(cpu, name), err_msg=f"{name}, frame {index}")
        assert (mine.participation is None) == (cpu.participation is None)
        if cpu.participation is not None:
            np.testing.assert_allclose(mine.participation, cpu.participation, atol=1e-5)
            relevant |= {index} if cpu.participation.max() > 0 else set()
        for feedback in (pair.ours, pair.theirs) if index in asks else ():
            feedback.set_query(tuple(asks[index]), compile_queries(encoder, asks[index]).terms)
    assert relevant >= {8, 11, *range(15, 20)}


@pytest.mark.parametrize("seed", seeds(40))
def test_random_trials(pairs: Any, seed: int, tmp_path: Path) -> None:
    """Random settings, clips and feedback; see tests/trials.py. Of thousands, a few differ where two choices are equal
    up to the order of additions.
    """
    tried = on_card(trial(seed, tmp_path))
    pair = pairs(tried.settings)
    missing = missing_kernels(pair.plan)
    if missing is not None:
        pytest.skip(missing)
    for ours, theirs in pair.run(iter(tried.frames)):
        assert len(ours) <= tried.most(ours.index)
        if pair.plan.queries is not None:  # then the card recomputes on unchanged frames as well
            ours = replace(ours, recomputed=theirs.recomputed)
        agree(ours, theirs, f"frame {ours.index}")
        assert ours.extras == theirs.extras
        assert (ours.participation is None) == (theirs.participation is None)
        if ours.participation is not None:
            np.testing.assert_allclose(ours.participation, theirs.participation, atol=MAP_ERROR)
        for name, values in ours.maps.items():
            if name not in CLUSTERS:  # see test_clusters
                np.testing.assert_allclose(values, theirs.maps[name], atol=MAP_ERROR, err_msg=name)
        for feedback in (pair.ours, pair.theirs):
            tried.feed(feedback, ours.index, len(ours))
