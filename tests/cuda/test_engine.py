"""The CUDA engine end to end: against the CPU engine, from files decoded by the hardware, and on every way out."""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.cuda.engine import CudaEngine
from foveate.cuda.frames import DeviceFrame
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.cpu.flow import FlowSearch
from foveate.pipeline.cpu.pyramid import State
from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import Frame
from foveate.pipeline.plan import StreamPlan, plan_stream
from foveate.pipeline.selection import Selection, Step
from foveate.pipeline.settings import AllocationSettings, Settings, SourceSettings
from foveate.pipeline.sinks.overlay.sink import OverlaySink
from foveate.pipeline.sources import open_source
from tests.trials import Trial, on_card, seeds, trial

pytestmark = pytest.mark.gpu

EQUAL = 0.99
"""Share of tokens that both engines choose: maps differ in their last bits, which moves tokens at the cut."""
START = "import sys; from foveate.app.main import entry; sys.exit(entry())"
CLIPS = ["pedestrians", "bunny", "tree"]
QUERIES = {"pedestrians": ("moving", "-left:0.5"), "bunny": ("pink", "large green"), "tree": ("dark",)}


def run(engine: Any, frames: list[Frame]) -> list[Selection]:
    return [step.selection for step in engine.cascade(engine.pyramid(engine.upload(iter(frames))))]


def run_trial(engine: Any, feedback: Feedback, tried: Trial) -> list[Selection]:
    """The Selections of a random trial, with its feedback on the way."""
    found = []
    for step in engine.cascade(engine.pyramid(engine.upload(iter(tried.frames)))):
        found.append(step.selection)
        tried.feed(feedback, step.selection.index, len(step.selection))
    return found


def read(clip: Path, count: int) -> list[Frame]:
    source = open_source(str(clip), SourceSettings(frames=count))
    frames = [
        Frame(f.index, f.time, f.luma.copy(), (f.chroma[0].copy(), f.chroma[1].copy()), f.colour)  # type: ignore[index]
        for f in source
    ]
    source.close()
    return frames


def tokens(selection: Selection) -> set[tuple[int, int, int]]:
    return set(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True))


def equal_share(first: list[Selection], second: list[Selection]) -> float:
    """Tokens that both chose, of all that either chose more of, over all frames; 1 where there are none."""
    chosen = [(tokens(a), tokens(b)) for a, b in zip(first, second, strict=True)]
    most = sum(max(len(a), len(b)) for a, b in chosen)
    return sum(len(a & b) for a, b in chosen) / most if most else 1.0


class CpuRun:
    """Runs the CPU engine, and keeps the flow that it finds, by the frame's index."""

    def __init__(self) -> None:
        self.flows: dict[int, Flow | None] = {}
        self.index = 0  # of the frame at work

    def __call__(self, settings: Settings, frames: list[Frame]) -> list[Selection]:
        return run(_Noting(self, plan_stream(settings), Feedback()), frames)

    def trial(self, tried: Trial) -> list[Selection]:
        feedback = Feedback()
        return run_trial(_Noting(self, plan_stream(tried.settings), feedback), feedback, tried)


class _Noting(CpuEngine):
    """Notes which frame is at work."""

    def __init__(self, run: CpuRun, plan: StreamPlan, feedback: Feedback) -> None:
        super().__init__(plan, feedback)
        self._run = run

    def cascade(self, states: Iterable[State]) -> Iterator[Step]:
        return super().cascade(self._noted(states))

    def _noted(self, states: Iterable[State]) -> Iterator[State]:
        for state in states:
            self._run.index = state.update.frame.index
            yield state


@pytest.fixture
def run_on_cpu(monkeypatch: pytest.MonkeyPatch) -> CpuRun:
    """Also keeps the flows, so that the card can be given the same."""
    cpu, search = CpuRun(), FlowSearch.search

    def keeping(self: FlowSearch, *arguments: Any) -> Flow | None:
        flow = cpu.flows[cpu.index] = search(self, *arguments)
        return flow

    monkeypatch.setattr(FlowSearch, "search", keeping)
    return cpu


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_both_engines_choose_the_same(clip: str, memory: Any, samples: Path, run_on_cpu: CpuRun) -> None:
    settings = Settings(allocation=AllocationSettings(memory=memory))
    frames = read(samples / f"{clip}.mp4", 45)
    expected = run_on_cpu(settings, frames)
    chosen = run(CudaEngine(plan_stream(settings), Feedback(), run_on_cpu.flows.get), frames)
    for mine, cpu in zip(chosen, expected, strict=True):
        assert mine.keyframe == cpu.keyframe
        assert mine.changed == pytest.approx(cpu.changed, abs=1e-9)
        assert abs(mine.recomputed - cpu.recomputed) < 0.01
        assert len(mine) <= settings.budget
    share = equal_share(chosen, expected)
    print(f"{clip}, {memory}: {share:.4%} of tokens equal")
    assert share >= EQUAL


def test_fields_of_equal_tokens_are_close(samples: Path, run_on_cpu: CpuRun) -> None:
    frames = read(samples / "pedestrians.mp4", 20)
    settings = Settings(patches=True)
    expected = run_on_cpu(settings, frames)
    chosen = run(CudaEngine(plan_stream(settings), Feedback(), run_on_cpu.flows.get), frames)
    compared = 0
    for mine, cpu in zip(chosen, expected, strict=True):
        if not (len(mine) == len(cpu) and (mine.x == cpu.x).all() and (mine.y == cpu.y).all()):
            continue
        compared += 1
        for name in ("score", "information", "perspective"):
            np.testing.assert_allclose(getattr(mine, name), getattr(cpu, name), atol=2e-4)
        assert (mine.age == cpu.age).mean() > 0.99
        assert (mine.fresh == cpu.fresh).mean() > 0.99
        assert mine.patches is not None
        assert cpu.patches is not None
        assert np.abs(mine.patches.astype(int) - cpu.patches.astype(int)).max() <= 1  # rounding of R'G'B'
    assert compared >= 10


def test_two_runs_select_the_same(samples: Path) -> None:
    frames = read(samples / "bunny.mp4", 25)
    settings = Settings(allocation=AllocationSettings(memory="stream"), patches=True)
    first, second = (run(CudaEngine(plan_stream(settings), Feedback()), frames) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        for name in ("x", "y", "lod", "score", "age", "fresh", "patches"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (one.index, name)


def moving(size: tuple[int, int], count: int, first: int = 0) -> Iterator[Frame]:
    rng = np.random.default_rng(size[0])
    picture = rng.integers(0, 256, (size[0] // 4 + 1, size[1] // 4 + 1), np.uint8).repeat(4, 0).repeat(4, 1)
    for index in range(first, first + count):
        luma = np.roll(picture, 2 * index, axis=1)[: size[0], : size[1]].copy()
        yield Frame(index, index / 25, luma, None)


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (33, 500), (240, 320)])
def test_any_size(size: tuple[int, int]) -> None:
    selections = run(CudaEngine(plan_stream(Settings()), Feedback()), list(moving(size, 5)))
    assert [selection.index for selection in selections] == [0, 1, 2, 3, 4]
    assert all(0 < len(selection) <= 273 for selection in selections)


def test_a_change_of_size_is_a_keyframe() -> None:
    frames = [*moving((240, 320), 4), *moving((120, 500), 4, first=4), *moving((240, 320), 2, first=8)]
    selections = run(CudaEngine(plan_stream(Settings()), Feedback()), frames)
    reasons = {selection.index: selection.keyframe for selection in selections if selection.keyframe}
    assert reasons == {0: "first", 4: "size", 8: "size"}
    assert [(s.width, s.height) for s in selections[3:5]] == [(320, 240), (500, 120)]


def test_a_still_picture_is_given_its_selection_again() -> None:
    frame = next(moving((240, 320), 1))
    still = [Frame(index, index / 25, frame.luma, None) for index in range(8)]
    for memory in ("frame", "stream"):
        settings = Settings(allocation=AllocationSettings(memory=memory))  # type: ignore[arg-type]
        expected, chosen = (run(kind(plan_stream(settings), Feedback()), still) for kind in (CpuEngine, CudaEngine))
        for cpu, mine in zip(expected, chosen, strict=True):
            assert tokens(mine) == tokens(cpu)
            assert np.array_equal(mine.age, cpu.age)
            assert np.array_equal(mine.fresh, cpu.fresh)
            assert mine.recomputed == pytest.approx(cpu.recomputed)


@pytest.mark.parametrize("clip", ["pedestrians", "bunny"])  # tree is 4:4:4, which is decoded on the CPU
def test_the_hardware_decodes_what_pyav_decodes(clip: str, samples: Path) -> None:
    path = str(samples / f"{clip}.mp4")
    with open_stream(path, engine="cuda", source={"frames": 40}) as stream:
        assert stream.info.decoded_on_cpu is None
        chosen = list(stream)
        assert stream.damage.frames == 0
    expected = run(CudaEngine(plan_stream(Settings()), Feedback()), read(Path(path), 40))
    for mine, other in zip(chosen, expected, strict=True):
        assert mine.time == other.time
        for name in ("x", "y", "lod", "score", "age", "fresh"):
            assert np.array_equal(getattr(mine, name), getattr(other, name)), (mine.index, name)


def test_the_overlay_draws_what_the_hardware_decoded(samples: Path, tmp_path: Path) -> None:
    path = samples / "pedestrians.mp4"
    outs = [tmp_path / f"{engine}.mp4" for engine in ("cuda", "cpu")]
    for out in outs:
        alone = {"engine": out.stem, "source": {"frames": 6}, "cache": {"enabled": False}}  # without flow both agree
        with open_stream(str(path), sinks=[OverlaySink(str(out))], **alone) as stream:
            assert len(list(stream)) == 6
    for mine, expected in zip(*(read(out, 6) for out in outs), strict=True):
        # The same picture, but for scores' last bits in the heat map: less than a level of what 8 bits round.
        assert np.abs(mine.luma.astype(int) - expected.luma).mean() < 1


def test_pictures_come_to_the_host_when_asked_for(samples: Path) -> None:
    class Keeper:
        """A sink that looks at every picture, from its own thread."""

        needs_patches = needs_heat = needs_query = False

        def __init__(self) -> None:
            self.kept: list[Any] = []

        def open(self, header: Any) -> None: ...

        def write(self, frame: Any, selection: Selection) -> None:
            assert isinstance(frame, DeviceFrame)
            self.kept.append((frame.luma, *frame.chroma))

        def close(self) -> None: ...

    keeper = Keeper()
    path = samples / "pedestrians.mp4"
    with open_stream(str(path), engine="cuda", source={"frames": 6}, sinks=[keeper]) as stream:
        assert len(list(stream)) == 6
    for planes, frame in zip(keeper.kept, read(path, 6), strict=True):
        assert frame.chroma is not None
        for mine, expected in zip(planes, (frame.luma, *frame.chroma), strict=True):
            assert np.array_equal(mine, expected)


def test_a_stream_left_half_way_leaves_no_thread(samples: Path) -> None:
    before = threading.active_count()
    for _ in range(3):
        with open_stream(str(samples / "pedestrians.mp4"), engine="cuda") as stream:
            for selection, _ in zip(stream, range(5), strict=False):
                assert len(selection)
    with open_stream(str(samples / "pedestrians.mp4"), engine="cuda"):
        pass  # never iterated
    assert threading.active_count() == before


def test_several_streams_at_once(samples: Path) -> None:
    path = str(samples / "tree.mp4")
    with open_stream(path, engine="cuda", source={"frames": 30}) as stream:
        alone = [tokens(selection) for selection in stream]
    found: dict[int, list[Any]] = {}

    def work(number: int) -> None:
        with open_stream(path, engine="cuda", source={"frames": 30}) as stream:
            found[number] = [tokens(selection) for selection in stream]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(found[number] == alone for number in range(4))


def test_a_second_process_on_the_card_is_no_trouble(samples: Path, tmp_path: Path) -> None:
    """The command line as a process of its own, while this one holds the card."""
    clip = str(samples / "pedestrians.mp4")
    out = tmp_path / "tokens.jsonl"
    with open_stream(clip, engine="cuda", source={"frames": 12}) as stream:
        first = next(stream)
        command = [sys.executable, "-c", START, "run", clip, "--engine", "cuda", "--frames", "12"]
        done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        rest = list(stream)
    header, *records = [json.loads(line) for line in out.read_text().splitlines()]
    assert header["config"]["engine"] == "cuda"
    assert [record["x"] for record in records] == [selection.x.tolist() for selection in (first, *rest)]


def test_gaze_and_attention_reach_the_device(samples: Path) -> None:
    """Fed in before the first frame, so that both engines see it on the same one."""
    frames = read(samples / "tree.mp4", 6)
    settings = Settings(maps=("eccentricity", "gaze"))
    results = []
    for kind in (CpuEngine, CudaEngine):
        feedback = Feedback()
        feedback.set_gaze((40.0, 200.0))
        results.append(run(kind(plan_stream(settings), feedback), frames))
    for cpu, mine in zip(*results, strict=True):
        for name in settings.maps:
            np.testing.assert_allclose(mine.maps[name], cpu.maps[name], atol=1e-5)


def test_a_gaze_outlives_a_change_of_size() -> None:
    frames = [*moving((240, 320), 3), *moving((120, 500), 3, first=3)]
    settings = Settings(maps=("eccentricity", "gaze"))
    results = []
    for kind in (CpuEngine, CudaEngine):
        feedback = Feedback()
        feedback.set_gaze((8.0, 8.0))
        results.append(run(kind(plan_stream(settings), feedback), frames))
    for cpu, mine in zip(*results, strict=True):
        assert mine.maps["eccentricity"][0, 0] == 0.0
        for name in settings.maps:
            np.testing.assert_allclose(mine.maps[name], cpu.maps[name], atol=1e-5)


def uncovered(selection: Selection) -> int:
    """Cells of the picture without a token."""
    seen = np.zeros(selection.grid, np.bool_)
    for x, y, lod in tokens(selection):
        top, left = (y - (8 << lod)) // 16, (x - (8 << lod)) // 16
        seen[top : top + (1 << lod), left : left + (1 << lod)] = True
    return int((~seen).sum())


def test_budget_and_interval_mid_stream(samples: Path) -> None:
    """They count from the next frame that is begun; frames on their way keep what they had."""
    with open_stream(str(samples / "pedestrians.mp4"), engine="cuda", budget=40, source={"frames": 40}) as stream:
        counts, reasons, holes = [], [], []
        for selection in stream:
            counts.append(len(selection))
            holes.append(uncovered(selection))
            reasons.append(selection.keyframe)
            if selection.index == 5:
                stream.set_budget(300)
            if selection.index == 14:
                stream.set_budget(7)
            if selection.index == 20:
                stream.set_keyframe_interval(3)
    assert all(0 < count <= 40 for count in counts[:6])
    assert all(40 < count <= 300 for count in counts[10:15])
    assert all(0 < count <= 7 for count in counts[19:])
    assert not any(holes)  # nor by the last, where LOD 4 needs 9 tokens: a graph captured before is out of date
    due = [index for index, reason in enumerate(reasons) if reason == "periodic" and index > 24]
    assert len(due) >= 4
    assert {after - before for before, after in itertools.pairwise(due)} == {3}


def test_patches_on_the_device_are_those_on_the_host(samples: Path) -> None:
    """Also long after: memory is used again only when nobody holds it."""
    torch = pytest.importorskip("torch")
    path = str(samples / "pedestrians.mp4")
    kept: list[tuple[Any, Any]] = []
    with open_stream(path, engine="cuda", patches=True, device_patches=True, source={"frames": 30}) as stream:
        for selection in stream:
            tensor = torch.from_dlpack(selection.device_patches)
            assert tensor.is_cuda
            assert tensor.dtype == torch.uint8
            assert tuple(tensor.shape) == selection.patches.shape == selection.device_patches.shape
            assert np.array_equal(selection.device_patches.host(), selection.patches)
            if selection.index % 5 == 0:
                kept.append((tensor, selection.patches))
    again = torch.from_dlpack(selection.device_patches)
    del selection
    for tensor, expected in [*kept, (again, again.cpu().numpy())]:
        assert np.array_equal(tensor.cpu().numpy(), expected)


def test_patches_may_stay_on_the_device_alone(samples: Path) -> None:
    """Through another consumer's stream, and without any."""
    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    with (
        open_stream(str(samples / "tree.mp4"), engine="cuda", device_patches=True, source={"frames": 8}) as stream,
        torch.cuda.stream(side),
    ):
        for selection in stream:
            assert selection.patches is None
            values = torch.from_dlpack(selection.device_patches).float()
            assert torch.isfinite(values).all()
            assert np.array_equal(values.cpu().numpy(), selection.device_patches.host())


def test_damage_is_told_and_ends_nothing(samples: Path, tmp_path: Path) -> None:
    whole = (samples / "pedestrians.mp4").read_bytes()
    short, garbled = tmp_path / "short.mp4", tmp_path / "garbled.mp4"
    short.write_bytes(whole[: len(whole) * 6 // 10])
    noise = np.random.default_rng(1).integers(0, 256, 40_000, np.uint8).tobytes()
    garbled.write_bytes(whole[:200_000] + noise + whole[240_000:])
    for path in (short, garbled):
        with open_stream(str(path), engine="cuda") as stream:
            count = len(list(stream))
        assert count > 10, path.name
    with open_stream(str(short), engine="cuda") as stream:
        assert len(list(stream)) > 10
    assert stream.damage.frames > 0


def test_what_the_hardware_cannot_decode_is_decoded_on_the_cpu(
    samples: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    import cv2

    for index in range(3):
        cv2.imwrite(str(tmp_path / f"f_{index}.png"), np.full((40, 50, 3), 60 * index, np.uint8))
    with open_stream(str(tmp_path / "f_%d.png"), engine="cuda") as stream:
        assert len(list(stream)) == 3
    assert stream.info.decoded_on_cpu == "not one file"
    assert stream.header.notes[1:] == ("decoded on the CPU: not one file",)
    assert len([record for record in caplog.records if "decoded on the CPU" in record.message]) == 1


@pytest.mark.parametrize("memory", ["frame", "stream"])
@pytest.mark.parametrize("clip", CLIPS)
def test_both_engines_answer_the_same(clip: str, memory: Any, samples: Path, run_on_cpu: CpuRun) -> None:
    maps = ("query", "query:bright", "clip0", "clip12", "text")
    settings = Settings(query=QUERIES[clip], maps=maps, allocation=AllocationSettings(memory=memory))
    frames = read(samples / f"{clip}.mp4", 45)
    expected = run_on_cpu(settings, frames)
    chosen = run(CudaEngine(plan_stream(settings), Feedback(), run_on_cpu.flows.get), frames)
    share = equal_share(chosen, expected)
    print(f"{clip}, {memory}: {share:.4%} of tokens equal")
    assert share >= EQUAL
    for mine, cpu in zip(chosen, expected, strict=True):
        for name in maps:
            assert np.abs(mine.maps[name] - cpu.maps[name]).mean() < 1e-3, name
        if tokens(mine) == tokens(cpu):
            assert mine.participation is not None
            assert cpu.participation is not None
            np.testing.assert_allclose(mine.participation, cpu.participation, atol=1e-3)


def test_a_query_asked_on_the_way_is_that_of_a_run_from_the_beginning(samples: Path) -> None:
    def select(first: tuple[str, ...], then: tuple[str, ...] | None) -> list[Selection]:
        alone = {"cache": {"enabled": False}, "source": {"frames": 12}, "keep_embeddings": True}
        found = []
        with open_stream(str(samples / "bunny.mp4"), engine="cuda", query=first, **alone) as stream:
            assert stream.header.config["engine"] == "cuda"
            for selection in stream:
                found.append(selection)
                if selection.index == 3 and then is not None:
                    stream.set_query(then)
        return found

    changed, whole = select((), ("green",)), select(("green",), None)
    assert changed[0].participation is None
    assert changed[-1].participation is not None
    assert [selection.extras for selection in changed if selection.extras] == [{"query": ("green",)}]
    assert tokens(changed[-1]) == tokens(whole[-1])
    np.testing.assert_allclose(changed[-1].participation, whole[-1].participation, atol=1e-6)


def test_what_the_hardware_decodes_can_be_asked(samples: Path) -> None:
    path = str(samples / "pedestrians.mp4")
    both: list[list[Selection]] = []
    alone = {"cache": {"enabled": False}, "source": {"frames": 10}}  # without flow both agree
    for engine in ("cuda", "cpu"):
        with open_stream(path, engine=engine, query=("red",), **alone) as stream:
            both.append(list(stream))
    for mine, cpu in zip(*both, strict=True):
        assert len(tokens(mine) & tokens(cpu)) >= EQUAL * len(cpu)


@pytest.mark.parametrize("seed", seeds(40))
def test_random_trials(seed: int, run_on_cpu: CpuRun, tmp_path: Path) -> None:
    """Random settings, clips and feedback, from pixels to tokens; see tests/trials.py."""
    tried = on_card(trial(seed, tmp_path))
    expected = run_on_cpu.trial(tried)
    feedback = Feedback()
    engine = CudaEngine(plan_stream(tried.settings), feedback, run_on_cpu.flows.get, lockstep=True)
    chosen = run_trial(engine, feedback, tried)
    for mine, cpu in zip(chosen, expected, strict=True):
        assert mine.keyframe == cpu.keyframe, mine.index
        assert mine.changed == pytest.approx(cpu.changed, abs=1e-9), mine.index
        assert len(mine) <= tried.most(mine.index)
    assert equal_share(chosen, expected) >= EQUAL
