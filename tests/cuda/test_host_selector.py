"""Tokens chosen on the host from the device's pixels, against the CPU engine alone: the same, whatever is asked for.

Every case runs on a card, and everywhere with a stand-in for one: device memory is the host's, and what the pixel
kernels would leave there is left by the CPU engine's Pyramid. All between that and the tokens is the real code.
"""

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda import host_selector
from foveate.cuda.engine import CudaEngine
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.engine import open_engine
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Frame
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.relevance.stream_query import compile_queries
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings, SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.text.boxes import Box
from tests.cuda.conftest import HostDriver

EQUAL = 0.99
"""Share of tokens on a card: its maps differ in their last bits, which moves tokens at the cut (see test_pixels)."""
MAPS_ERROR = 1e-3
"""Mean error of a map on a card: where a cell is an edge for one engine only, edge_distance differs around it."""
MODEL = """
import numpy as np
def slope(rgb):
    return np.broadcast_to(np.linspace(0, 1, rgb.shape[1], dtype=np.float32), rgb.shape[:2])
"""
WEIGHTS = (
    "bias = 0.05\n[weights]\nred = 0.5\nx = 0.25\nedges = -0.5\nboundary = 0.125\nfixation = 0.1\npass1_score = 0.2\n"
)
STREAM = {"memory": "stream", "merge": 2}
FRAMES = 24

CASES: dict[str, dict[str, Any]] = {
    "cluster_first": {"allocation": {"strategy": "cluster_first"}},
    "cluster_first in a stream": {"allocation": {"strategy": "cluster_first", **STREAM}},
    "foveated": {"allocation": {"strategy": "foveated"}, "score": {"passes": 2}},
    "foveated in a stream": {"allocation": {"strategy": "foveated", **STREAM}, "score": {"passes": 2}},
    "linear scorer": {"score": {"scorer": "linear", "weights": "w.toml", "passes": 2}},
    "two passes": {"score": {"passes": 2}, "maps": ("pass1_score", "eccentricity", "score"), "allocation": STREAM},
    "text": {"maps": ("text", "edge_distance", "motion", "red", "saliency")},
    "a depth model": {
        "depth": "mine.py:slope",
        "maps": ("depth", "normal_x", "occlusion", "rope_sin", "prev_saliency"),
    },
    "clusters without a cache": {"maps": ("cluster_id", "boundary"), "cache": {"enabled": False}},
    "patches": {"score": {"passes": 2}, "patches": True},
    "one token": {"score": {"passes": 2}, "patches": True, "budget": 1},
    "a query": {"score": {"passes": 2}, "allocation": STREAM, "query": ("dark", "-left:0.5"), "maps": ("query",)},
    "regions": {"regions": "boxes.jsonl", "region_tokens": 30},
    "regions in a stream": {"regions": "boxes.jsonl", "allocation": STREAM, "query": ("dark",)},
    "text by a detector": {"text": "ocr", "query": ("text",), "maps": ("text", "clip13"), "ocr": {"interval": 4}},
    "queries and weights": {"query": ("moving",), "score": {"passes": 2}, "maps": ("query_similarity", "query:bright")},
}


BOXES = """
{"frame": 0, "regions": [{"name": "left", "box": [10, 20, 100, 90]}, {"name": "over it", "box": [60, 60, 200, 200]}]}
{"frame": 4, "regions": [{"name": "all", "box": [-50, -50, 9000, 9000], "tokens": 20}]}
"""


def dark_is_text(rgb: NDArray[np.uint8]) -> list[Box]:
    """Stands in for a text detector: one box, in the half of the picture that is darker."""
    height, width = rgb.shape[:2]
    left = 0 if rgb[:, : width // 2].mean() < rgb[:, width // 2 :].mean() else width // 2
    right = left + width // 2
    corners = [[left, 0], [right, 0], [right, height // 2], [left, height // 2]]
    return [Box(np.array(corners, np.float32), 0.75)]


def steps(engine: Any, frames: list[Frame]) -> Iterator[Selection]:
    for step in engine.cascade(engine.pyramid(engine.upload(iter(frames)))):
        assert step.frame is frames[step.selection.index]
        yield step.selection


def read(clip: Path, count: int) -> list[Frame]:
    source = open_source(str(clip), SourceSettings(frames=count))
    frames = list(source)
    source.close()
    return frames


def same(mine: list[Selection], expected: list[Selection], card: bool) -> None:
    """Equal in every field; on a card, in nearly all tokens."""
    assert len(mine) == len(expected)
    for one, other in zip(mine, expected, strict=True):
        assert one.keyframe == other.keyframe
        assert one.maps.keys() == other.maps.keys()
        assert one.extras == other.extras
        assert one.changed == pytest.approx(other.changed)
        assert one.recomputed == pytest.approx(other.recomputed)
        if np.array_equal(one.x, other.x) and np.array_equal(one.y, other.y) and np.array_equal(one.lod, other.lod):
            assert_equal(one.patches, other.patches, "patches")
        for field in () if card else fields(Selection):
            assert_equal(getattr(one, field.name), getattr(other, field.name), f"{field.name} of frame {one.index}")
        for name in one.maps:
            assert np.abs(one.maps[name] - other.maps[name]).mean() <= MAPS_ERROR, name
    both = sum(len(tokens(a) & tokens(b)) for a, b in zip(mine, expected, strict=True))
    most = sum(max(len(tokens(a)), len(tokens(b))) for a, b in zip(mine, expected, strict=True))
    share = both / max(1, most)
    print(f"{share:.4%} of tokens equal")
    assert share >= EQUAL


def assert_equal(one: Any, other: Any, name: str) -> None:
    if isinstance(other, np.ndarray):
        assert one.dtype == other.dtype, name
        assert np.array_equal(one, other), name
    elif name.startswith("maps"):
        assert all(np.array_equal(one[key], other[key]) for key in other), name
    else:
        assert one == other, name


def tokens(selection: Selection) -> set[tuple[int, int, int]]:
    return set(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("clip", ["tree", "pedestrians"])  # 4:4:4 and 4:2:0
def test_both_engines_choose_the_same(
    case: str, clip: str, card: bool, samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MODEL)
    Path("w.toml").write_text(WEIGHTS)
    Path("boxes.jsonl").write_text(BOXES)
    monkeypatch.setattr("foveate.pipeline.plan.open_detector", lambda settings: dark_is_text)
    settings = Settings.model_validate({"change": {"keyframe_interval": 10}, "budget": 100, **CASES[case]})
    frames = read(samples / f"{clip}.mp4", FRAMES)
    expected = list(steps(CpuEngine(plan_stream(settings), Feedback()), frames))
    engine = CudaEngine(plan_stream(settings), Feedback())
    assert engine.info.tokens_on_cpu
    chosen = list(steps(engine, frames))
    same(chosen, expected, card)


def test_what_is_fed_in_counts_from_the_same_frame(card: bool, samples: Path) -> None:
    settings = Settings.model_validate(
        {"score": {"passes": 2}, "maps": ("gaze", "attention", "eccentricity"), "keep_embeddings": True}
    )
    frames = read(samples / "tree.mp4", 16)
    found = []
    for kind in (CudaEngine, CpuEngine):
        feedback, plan = Feedback(), plan_stream(settings)
        assert plan.queries is not None
        feedback.keyframe_interval = 6
        selections = []
        for selection in steps(kind(plan, feedback), frames):
            selections.append(selection)
            if selection.index == 3:
                feedback.set_gaze((40.0, 200.0))
                feedback.set_budget(50)
            if selection.index == 7:
                feedback.add_attention(7, np.linspace(0, 1, len(selection)))
                feedback.set_query(("dark",), compile_queries(plan.queries.encoder, ["dark"]).terms)
        found.append(selections)
    same(found[0], found[1], card)
    assert [selection.index for selection in found[0] if selection.keyframe == "periodic"] == [6, 12]
    assert max(len(selection) for selection in found[0][4:]) <= 50 < len(found[0][3])
    assert found[0][7].participation is None
    assert found[0][8].participation is not None


def moving(size: tuple[int, int], count: int, first: int, still: int = 0) -> Iterator[Frame]:
    """Grey noise that shifts, and then stands still."""
    picture = np.random.default_rng(size[0]).integers(0, 256, size, np.uint8)
    for index in range(count):
        yield Frame(first + index, (first + index) / 25, np.roll(picture, 3 * min(index, count - still), axis=1), None)


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_sizes_change_and_pictures_rest(memory: str, card: bool) -> None:
    rests = [*moving((70, 130), 6, 0, still=4), *moving((70, 130), 5, 6, still=3), *moving((70, 130), 2, 11)]
    frames = [*rests, *moving((33, 17), 3, 13), *moving((1, 1), 2, 16), *moving((70, 130), 2, 18)]
    settings = Settings.model_validate(
        {"allocation": {"strategy": "cluster_first", "memory": memory}, "patches": True, "budget": 8}
    )
    chosen, expected = (
        list(steps(kind(plan_stream(settings), Feedback()), frames)) for kind in (CudaEngine, CpuEngine)
    )
    same(chosen, expected, card)
    reasons = {selection.index: selection.keyframe for selection in chosen if selection.keyframe}
    assert reasons == {0: "first", 13: "size", 16: "size", 18: "size"}
    assert [selection.changed for selection in (*chosen[3:6], *chosen[9:11])] == [0] * 5
    assert len(chosen[10])  # also of a picture that rests, pixels are read


@pytest.mark.parametrize("lockstep", [False, True])
def test_the_next_frame_is_at_work_while_one_is_chosen(lockstep: bool, samples: Path, card: bool) -> None:
    """But in lockstep, where each frame is answered before the next one is asked for."""
    order: list[str] = []

    def frames() -> Iterator[Frame]:
        for frame in read(samples / "tree.mp4", 4):
            order.append(f"work on {frame.index}")
            yield frame

    settings = Settings.model_validate({"allocation": {"strategy": "cluster_first"}})
    engine = CudaEngine(plan_stream(settings), Feedback(), lockstep=lockstep)
    for step in engine.cascade(engine.pyramid(engine.upload(frames()))):
        order.append(f"tokens of {step.selection.index}")
    begun, chosen = ([order.index(f"{what} {frame}") for frame in range(4)] for what in ("work on", "tokens of"))
    assert all((begun[frame + 1] > chosen[frame]) == lockstep for frame in range(3))
    assert all(chosen[frame] < begun[frame + 2] for frame in range(2))


@pytest.mark.parametrize("lockstep", [False, True])
def test_memory_of_earlier_sizes_is_freed(lockstep: bool, card: bool) -> None:
    """As soon as the next frame's tokens are there; and all of it at the end."""
    if card:
        pytest.skip("other streams of the process have memory on the card too")
    held = []
    settings = Settings.model_validate({"allocation": {"strategy": "cluster_first"}, "budget": 8})
    engine = CudaEngine(plan_stream(settings), Feedback(), lockstep=lockstep)
    frames = [*moving((70, 130), 4, 0), *moving((32, 32), 4, 4), *moving((70, 130), 4, 8)]
    for _ in engine.cascade(engine.pyramid(engine.upload(iter(frames)))):
        held.append(HostDriver.held())
    assert HostDriver.held() == 0
    assert held[2] == held[1] == held[10] == held[11] > held[6] > 0


@pytest.mark.parametrize("patches", [True, False])
def test_patches_for_the_device_leave_the_host_where_it_did_not_ask(
    patches: bool, samples: Path, card: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Kept:
        """Stands in for PatchesOnDevice."""

        closed = 0

        def __init__(self, device: Any, room: int) -> None: ...

        def copy_of(self, patches: NDArray[np.uint8]) -> NDArray[np.uint8]:
            return patches.copy()

        def close(self) -> None:
            Kept.closed += 1

    monkeypatch.setattr(host_selector, "PatchesOnDevice", Kept)
    wanted: dict[str, Any] = {"allocation": {"strategy": "cluster_first"}, "budget": 30}
    frames = read(samples / "tree.mp4", 4)
    expected = list(
        steps(CpuEngine(plan_stream(Settings.model_validate({**wanted, "patches": True})), Feedback()), frames)
    )
    settings = Settings.model_validate({**wanted, "patches": patches, "device_patches": True})
    for mine, cpu in zip(steps(CudaEngine(plan_stream(settings), Feedback()), frames), expected, strict=True):
        assert np.array_equal(mine.device_patches, cpu.patches)
        assert (mine.patches is not None) == patches
    assert Kept.closed == 1


def test_an_error_of_a_model_ends_the_engine(card: bool, samples: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def broken(rgb):\n    raise RuntimeError('out of ideas')\n")
    settings = Settings.model_validate({"depth": f"{tmp_path / 'mine.py'}:broken", "maps": ("depth",)})
    with pytest.raises(EngineError, match="the depth model failed: RuntimeError: out of ideas"):
        list(steps(CudaEngine(plan_stream(settings), Feedback()), read(samples / "tree.mp4", 3)))


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"allocation": {"strategy": "cluster_first"}}, "there are no kernels for the strategy 'cluster_first'"),
        ({"maps": ("rope_sin",)}, "there are no kernels for the channel 'rope_sin'"),
        ({"maps": ("boundary",), "cache": {"enabled": False}}, "the kernels make clusters on keyframes only"),
        ({"maps": ("text",)}, "there are no kernels for the channel 'text' without a query"),
        ({"maps": ("clip3",), "text": "ocr"}, "text is found by a detector"),
        ({"regions": "/dev/null"}, "there are no kernels for regions"),
        ({"score": {"passes": 2}}, "there are no kernels for a second pass"),
        (
            {"score": {"scorer": "linear", "weights": "w.toml"}},
            "there are no kernels that weigh the channel 'boundary'",
        ),
        ({"score": {"scorer": "linear", "weights": "on_card.toml"}, "allocation": {"strategy": "adaptive"}}, None),
        ({"allocation": {"strategy": "three_stage"}, "maps": ("boundary", "clip3", "text")}, None),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "cuda"])
def test_the_header_says_where_tokens_are_chosen(
    engine: str, wanted: dict[str, Any], said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("w.toml").write_text(WEIGHTS.replace("pass1_score", "motion"))
    Path("on_card.toml").write_text("bias = 0.05\n[weights]\nx = 0.25\nfixation = 0.1\nedges = -0.5\n")
    monkeypatch.setattr("foveate.cuda.driver.device.gpu_problem", lambda: None)
    monkeypatch.setattr("foveate.cuda.driver.device.check_number", lambda index: None)
    monkeypatch.setattr("foveate.pipeline.plan.open_detector", lambda settings: dark_is_text)
    settings = Settings.model_validate({"engine": engine, **wanted})
    opened = open_engine(plan_stream(settings), Feedback())
    assert opened.info == EngineInfo("cuda", tokens_on_cpu=said)


@pytest.mark.gpu
@pytest.mark.parametrize("clip", ["pedestrians", "bunny"])
def test_what_the_hardware_decodes(clip: str, samples: Path, tmp_path: Path) -> None:
    """With a depth model and two passes, so that whole pictures come to the host as well."""
    (tmp_path / "mine.py").write_text(MODEL)
    wanted: dict[str, Any] = {"maps": ("depth",), "depth": f"{tmp_path / 'mine.py'}:slope", "score": {"passes": 2}}
    both = []
    for engine in ("cuda", "cpu"):
        with open_stream(str(samples / f"{clip}.mp4"), engine=engine, source={"frames": 40}, **wanted) as stream:
            assert stream.header.config["engine"] == engine
            assert stream.info.decoded_on_cpu is None
            both.append(list(stream))
    same(both[0], both[1], card=True)


@pytest.mark.gpu
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_patches_on_the_device_are_those_on_the_host(memory: str, samples: Path) -> None:
    torch = pytest.importorskip("torch")
    chosen = {"allocation": {"memory": memory}, "score": {"passes": 2}}  # by the CPU
    wanted: dict[str, Any] = {**chosen, "device_patches": True, "source": {"frames": 20}, "engine": "cuda"}
    path = str(samples / "pedestrians.mp4")
    with open_stream(path, patches=True, **wanted) as stream:
        kept = [(torch.from_dlpack(each.device_patches), each.patches) for each in stream]
    for tensor, expected in kept:
        assert tensor.is_cuda
        assert np.array_equal(tensor.cpu().numpy(), expected)
    with open_stream(path, **wanted) as stream:
        for selection, (_, expected) in zip(stream, kept, strict=True):
            assert selection.patches is None
            assert np.array_equal(selection.device_patches.host(), expected)
