"""What a model is given of the same frames by each method, against the frames as they are decoded here."""

from pathlib import Path

import av
import numpy as np
import pytest

from foveate.bench.cases.model_inputs import FOVEATE, Frames, Method, methods_of, whole
from foveate.bench.cases.questions import Question
from foveate.pipeline import open_stream
from foveate.pipeline.vlm.groups import Groups


@pytest.fixture(scope="module")
def question(samples: Path) -> Question:
    return Question("1", samples / "pedestrians.mp4", "Who is moving?", ("He", "She"), "A")


@pytest.fixture(scope="module", params=[1, 2])
def frames(question: Question, request: pytest.FixtureRequest) -> Frames:
    return Frames(question, 1.0, 3, request.param)


def test_every_method_sees_the_same_frames_within_its_budget(frames: Frames) -> None:
    merge = frames.merge
    times = [each.time for each in frames.inputs(Method("all patches", None))]
    assert len(times) == 3
    methods = methods_of([17, 34])
    assert len(methods) == 1 + 2 * 5
    for method in methods[1:]:
        given = frames.inputs(method)
        assert [each.time for each in given] == times, method
        for each in given:
            groups = len(Groups.of(each, merge))
            assert 0.7 * method.budget <= groups <= method.budget, method
            assert method.name == "Foveate, mixed" or not each.lod.any(), method


def test_the_frames_are_spread_over_the_video(frames: Frames, question: Question) -> None:
    with av.open(str(question.video)) as container:
        length = container.duration / 1e6
    times = [each.time for each in frames.inputs(Method("all patches", None))]
    step = 1 / min(1.0, 3 / length)
    assert np.diff(times) == pytest.approx([step, step], abs=0.05)


def test_all_patches_are_the_frame(frames: Frames) -> None:
    for each in frames.inputs(Method("all patches", None)):
        groups = Groups.of(each, frames.merge)
        assert (groups.position == np.arange(groups.grid[0] * groups.grid[1])).all()
        shown = each.paint()
    with av.open(str(frames.question.video)) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    nearest = min(float(np.abs(shown.astype(int) - picture).mean()) for picture in pictures)
    assert nearest < 1.5  # two ways of enlarging chroma and of rounding


def test_tokens_outside_repeat_their_neighbours() -> None:
    rgb = np.random.default_rng(1).integers(0, 256, (48, 80, 3), np.uint8)  # 3 x 5 cells: groups reach over both edges
    with open_stream([rgb], budget=4) as stream:
        (like,) = stream
    found = whole(rgb, like, 2)
    assert len(found) == 2 * 3 * 4
    assert list(zip(found.y[-4:], found.x[-4:], strict=True)) == [(40, 72)] * 4
    assert list(zip(found.y[:4], found.x[:4], strict=True)) == [(8, 8), (8, 24), (24, 8), (24, 24)]
    for y, x, patch in zip(found.y, found.x, found.patches, strict=True):
        assert (patch == rgb[y - 8 : y + 8, x - 8 : x + 8]).all()
    assert (found.paint() == rgb).all()


def test_random_and_uniform_are_what_they_say(frames: Frames) -> None:
    per = frames.merge**2
    first, second, _ = frames.inputs(Method("random", 17))
    assert (first.x != second.x).any() or (first.y != second.y).any()
    again = frames.inputs(Method("random", 17))[0]
    assert (again.x == first.x).all()
    assert (again.patches == first.patches).all()
    groups = len(frames.inputs(Method("all patches", None))[0]) // per
    kept = Groups.of(frames.inputs(Method("uniform", 17))[0], frames.merge).position
    assert kept.tolist() == [number * groups // 17 for number in range(17)]


def test_the_part_that_is_asked_about(question: Question) -> None:
    part = Question("1", question.video, "Who?", ("He", "She"), "A", 2.0, 4.0)
    for name in (*FOVEATE, "downscale"):
        times = [each.time for each in Frames(part, 2.0, 2, 1).inputs(Method(name, 17))]
        assert times == pytest.approx([2.0, 3.0], abs=0.05)
