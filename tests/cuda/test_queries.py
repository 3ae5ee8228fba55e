"""Queries on the GPU: the same tokens, relevance and maps as the CPU engine's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.cuda.engine import CudaEngine
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.cache import Flow
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu import cascade as cpu_cascade
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.frames import Frame
from foveate.pipeline.query.asked import asked
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import AllocationSettings, Settings, SourceSettings
from foveate.pipeline.sources import open_source

pytestmark = pytest.mark.gpu

EQUAL = 0.99
"""Share of tokens that both engines choose: maps differ in their last bits, which moves tokens at the cut."""
QUERIES = {"pedestrians": ("moving", "-left:0.5"), "bunny": ("pink", "large green"), "tree": ("dark",)}


def run(engine: Any, frames: list[Frame]) -> list[Selection]:
    return [step.selection for step in engine.cascade(engine.pyramid(engine.upload(iter(frames))))]


def read(clip: Path, count: int) -> list[Frame]:
    source = open_source(str(clip), SourceSettings(frames=count))
    frames = [
        Frame(f.index, f.seconds, f.luma.copy(), (f.chroma[0].copy(), f.chroma[1].copy()), f.colour)  # type: ignore[index]
        for f in source
    ]
    source.close()
    return frames


def tokens(selection: Selection) -> set[tuple[int, int, int]]:
    return set(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True))


@pytest.fixture
def flows(monkeypatch: pytest.MonkeyPatch) -> dict[int, Flow | None]:
    """The flow that the CPU engine finds from now on, by the frame's index."""
    found: dict[int, Flow | None] = {}
    carry, search, index = cpu_cascade._Cascade._carry, cpu_cascade.FlowSearch.search, [0]

    def noting(self: Any, state: Any, changed: Any) -> Any:
        index[0] = state.update.frame.index
        return carry(self, state, changed)

    def keeping(self: Any, picture: Any, changed: Any) -> Flow | None:
        found[index[0]] = search(self, picture, changed)
        return found[index[0]]

    monkeypatch.setattr(cpu_cascade._Cascade, "_carry", noting)
    monkeypatch.setattr(cpu_cascade.FlowSearch, "search", keeping)
    return found


@pytest.mark.parametrize("memory", ["frame", "stream"])
@pytest.mark.parametrize("clip", QUERIES)
def test_both_engines_answer_the_same(clip: str, memory: Any, samples: Path, flows: dict[int, Flow | None]) -> None:
    maps = ("query", "query:bright", "clip0", "clip12", "text")
    settings = Settings(query=QUERIES[clip], maps=maps, allocation=AllocationSettings(memory=memory))
    frames = read(samples / f"{clip}.mp4", 45)
    expected = run(CpuEngine(settings, Feedback(), asked(settings)), frames)
    chosen = run(CudaEngine(settings, Feedback(), asked(settings), flows.get), frames)
    both = sum(len(tokens(mine) & tokens(cpu)) for mine, cpu in zip(chosen, expected, strict=True))
    share = both / sum(max(len(mine), len(cpu)) for mine, cpu in zip(chosen, expected, strict=True))
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
