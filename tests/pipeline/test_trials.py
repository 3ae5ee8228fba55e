"""Random trials on the CPU: what is promised of every frame, whatever the settings, the clip and the feedback."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks.json_lines import record_of
from foveate.pipeline.stream import Stream, prepared
from tests.trials import Trial, seeds, trial

SHARES = ("score", "information", "perspective")


@pytest.mark.parametrize("seed", seeds(60))
@pytest.mark.filterwarnings("ignore:overflow")
def test_what_is_promised_of_every_frame(seed: int, tmp_path: Path) -> None:
    tried = trial(seed, tmp_path)
    first = run(tried)
    assert len(first) == len(tried.frames)
    for frame, selection in zip(tried.frames, first, strict=True):
        check(tried, frame, selection)
    again = threaded(tried) if not tried.events else run(tried)
    for one, other in zip(first, again, strict=True):
        same(one, other)


def run(tried: Trial) -> list[Selection]:
    """The Selections, without threads."""
    feedback = Feedback()
    engine = CpuEngine(plan_stream(tried.settings), feedback)
    found = []
    for step in engine.cascade(engine.pyramid(engine.upload(iter(tried.frames)))):
        found.append(step.selection)
        tried.feed(feedback, step.selection.index, len(step.selection))
    return found


class Given:
    """A Source of frames that are there already."""

    def __init__(self, frames: list[Frame]) -> None:
        self._frames = frames
        self.info, self.damage = SourceInfo("given", frames[0].width, frames[0].height, 25.0, None), Damage()

    def __iter__(self) -> Any:
        return iter(self._frames)

    def close(self) -> None: ...


def threaded(tried: Trial) -> list[Selection]:
    """The same with a thread for every stage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.cpu_count", lambda: 8)
        with Stream(Given(tried.frames), prepared(tried.settings, (), {}), ()) as stream:
            return list(stream)


def check(tried: Trial, frame: Frame, selection: Selection) -> None:
    """One frame."""
    settings, count = tried.settings, len(selection)
    assert (selection.index, selection.time) == (frame.index, frame.time)
    assert (selection.width, selection.height) == (frame.width, frame.height)
    assert count <= tried.most(frame.index)
    assert count % settings.allocation.merge**2 == 0
    for name in (*SHARES, *(["participation"] if selection.participation is not None else [])):
        values = getattr(selection, name)
        assert np.isfinite(values).all(), name
        assert ((values >= 0) & (values <= 1)).all(), name
    assert (selection.age >= 0).all()
    assert 0 <= selection.changed <= 1
    assert 0 <= selection.recomputed <= 1
    for name, values in selection.maps.items():
        assert np.isfinite(values).all(), name
    if settings.patches:
        assert selection.patches is not None
        assert selection.patches.shape == (count, 16, 16, 3)
    check_places(settings, selection)
    record = json.loads(orjson.dumps(record_of(selection, (1, 1)), option=orjson.OPT_SERIALIZE_NUMPY))
    fields = ("x", "y", "lod", "age", "fresh", *SHARES, *(["region"] if settings.regions else []))
    assert {len(record[name]) for name in fields} == {count}


def check_places(settings: Settings, selection: Selection) -> None:
    """On the lattice, on the picture, nothing twice; with frame memory everything once where nothing says otherwise."""
    geometry = Geometry(selection.width, selection.height)
    regions = np.zeros(len(selection), int) if selection.region is None else selection.region
    for region in np.unique(regions):
        covered = np.zeros(geometry.grid, int)
        chosen = regions == region
        places = zip(*(values[chosen].tolist() for values in (selection.x, selection.y, selection.lod)), strict=True)
        for x, y, lod in set(places):
            side = 16 << lod
            left, top = x - side // 2, y - side // 2
            assert left % side == 0
            assert top % side == 0
            assert 0 <= left < selection.width
            assert 0 <= top < selection.height
            covered[top // 16 : (top + side) // 16, left // 16 : (left + side) // 16] += 1
        assert covered.max(initial=0) <= 1
    whole = settings.allocation.strategy in ("rate_distortion", "foveated") and settings.regions is None
    if whole and settings.allocation.memory == "frame":
        assert covered_everywhere(selection, geometry)


def covered_everywhere(selection: Selection, geometry: Geometry) -> bool:
    """Whether the tokens cover the picture."""
    covered = np.zeros(geometry.grid, bool)
    for x, y, lod in zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True):
        half = 8 << lod
        covered[(y - half) // 16 : (y + half) // 16, (x - half) // 16 : (x + half) // 16] = True
    return bool(covered[geometry.inside].all())


def same(one: Selection, other: Selection) -> None:
    """Bit for bit."""
    for name in ("index", "time", "keyframe", "changed", "recomputed", "extras", "regions"):
        assert getattr(one, name) == getattr(other, name), (one.index, name)
    for name in ("x", "y", "lod", *SHARES, "participation", "age", "fresh", "patches", "region"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), (one.index, name)
    for name, values in one.maps.items():
        assert np.array_equal(values, other.maps[name]), (one.index, name)
