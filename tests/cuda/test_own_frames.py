"""Frames of one's own on the CUDA engine: chosen as on the CPU, and each frame answered before the next one comes."""

import io
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.frames import DeviceFrame
from foveate.pipeline import open_push_stream, open_stream
from foveate.pipeline.selection import Selection

pytestmark = pytest.mark.gpu

EQUAL = 0.99
"""Share of tokens that both engines choose: maps differ in their last bits, which moves tokens at the cut."""
WITHOUT_FLOW: Any = {"enabled": False}  # which each engine searches in its own way


def pictures(clip: Path, count: int) -> list[NDArray[np.uint8]]:
    with open_stream(clip, engine="cpu", source={"frames": count}) as stream:
        return [stream.frame.rgb() for _ in stream if stream.frame is not None]


def tokens(selection: Selection) -> set[tuple[int, int, int]]:
    return set(zip(selection.x.tolist(), selection.y.tolist(), selection.lod.tolist(), strict=True))


def pushed(engine: Any, given: list[Any], **settings: Any) -> list[Selection]:
    """The answers to all frames, within a time limit: a stream that waits for the next frame would never answer."""
    answers: list[Selection] = []

    def push() -> None:
        with open_push_stream(engine=engine, **settings) as stream:
            for number, picture in enumerate(given):
                answers.append(stream.push(picture))
                assert answers[-1].index == number
                assert stream.frame is not None
                assert stream.frame.index == number

    worker = threading.Thread(target=push, daemon=True)
    worker.start()
    worker.join(120)
    assert not worker.is_alive()
    assert len(answers) == len(given)
    return answers


# Queries are answered on the way, and the linear strategies on the host: those are paths of their own.
@pytest.mark.parametrize(
    "settings",
    [{}, {"allocation": {"memory": "stream"}}, {"query": ["red"]}, {"allocation": {"strategy": "adaptive"}}],
)
def test_every_frame_is_answered_at_once_and_as_on_the_cpu(settings: dict[str, Any], samples: Path) -> None:
    given: list[Any] = pictures(samples / "pedestrians.mp4", 12)
    given.append(given[0][:200, :300])  # a change of size
    mine, cpu = (pushed(engine, given, cache=WITHOUT_FLOW, **settings) for engine in ("cuda", "cpu"))
    both = sum(len(tokens(a) & tokens(b)) for a, b in zip(mine, cpu, strict=True))
    share = both / max(1, sum(max(len(a), len(b)) for a, b in zip(mine, cpu, strict=True)))
    print(f"{settings}: {share:.4%} of tokens equal")
    assert share >= EQUAL
    assert [each.keyframe for each in mine] == [each.keyframe for each in cpu]


def test_an_iterable_is_chosen_from_as_it_is_pushed(samples: Path) -> None:
    given = pictures(samples / "tree.mp4", 10)
    with open_stream(given, engine="cuda") as stream:
        expected = list(stream)
    for one, other in zip(pushed("cuda", given), expected, strict=True):
        assert tokens(one) == tokens(other)


def test_the_frame_beside_a_selection_is_on_the_device_until_it_is_asked_for(samples: Path) -> None:
    clip = samples / "pedestrians.mp4"
    expected = pictures(clip, 6)
    with open_stream(clip, engine="cuda", source={"frames": 6}, patches=True) as stream:
        for number, selection in enumerate(stream):
            frame = stream.frame
            assert isinstance(frame, DeviceFrame)
            assert (frame.index, frame.time) == (selection.index, selection.time)
            assert "_host" not in vars(frame)  # nothing was copied yet
            assert (frame.rgb() == expected[number]).mean() > 0.999  # decoders agree but for rare rounding
            assert selection.draw(frame).shape == selection.paint().shape == (576, 768, 3)
    assert (frame.rgb() == expected[5]).mean() > 0.999  # it outlives the stream


def test_frames_on_the_device_may_be_given_to_another_stream(samples: Path) -> None:
    clip = samples / "pedestrians.mp4"
    with open_stream(clip, engine="cuda", source={"frames": 4}) as stream:
        expected = [tokens(selection) for selection in stream]
    with open_stream(clip, engine="cuda", source={"frames": 4}) as stream:
        frames = [stream.frame for _ in stream]
    with open_stream(frames, engine="cuda") as stream:
        assert [tokens(selection) for selection in stream] == expected


def test_both_engines_tokens_paint_the_same_picture(samples: Path) -> None:
    given: list[Any] = pictures(samples / "pedestrians.mp4", 1)
    mine, cpu = (pushed(engine, given, patches=True)[0] for engine in ("cuda", "cpu"))
    assert np.abs(mine.paint().astype(int) - cpu.paint()).mean() < 0.5


def test_a_file_object_is_decoded_by_the_hardware(samples: Path) -> None:
    data = io.BytesIO((samples / "pedestrians.mp4").read_bytes())
    with open_stream(data, engine="cuda", source={"frames": 5}) as stream:
        assert stream.info.decoded_on_cpu is None
        found = list(stream)
        assert isinstance(stream.frame, DeviceFrame)
    with open_stream(samples / "pedestrians.mp4", engine="cuda", source={"frames": 5}) as stream:
        assert [tokens(each) for each in found] == [tokens(each) for each in stream]


def test_tensors_on_the_device_may_be_pushed(samples: Path) -> None:
    torch = pytest.importorskip("torch")
    given = pictures(samples / "tree.mp4", 4)
    tensors = [torch.from_numpy(picture).permute(2, 0, 1).cuda() for picture in given]
    for one, other in zip(pushed("cuda", tensors), pushed("cuda", given), strict=True):
        assert tokens(one) == tokens(other)
