"""Text of a stream by a detector: carried with what moves, when it is looked for, and a detector that is slow or fails.

The detector is a stand-in that takes white for text.
"""

import json
import logging
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.app.main import main
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Colour, Frame, LiveTimes
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.text.boxes import Box

LIMIT = 10.0  # seconds for what takes none
HEIGHT, WIDTH = 256, 480
SPEED = 4  # pixels per frame
SIGN = (slice(96, 128), slice(64, 128))  # rows and columns of pixels of the first frame: cells 6 to 7 and 4 to 7


class WhiteIsText:
    """One box around all pixels that are white."""

    def __init__(self) -> None:
        self.looks = 0
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.faults = 0  # how many of the next looks fail

    def __call__(self, rgb: NDArray[np.uint8]) -> list[Box]:
        assert self.gate.wait(LIMIT)
        self.looks += 1
        self.threads.add(threading.current_thread().name)
        if self.faults:
            self.faults -= 1
            raise EngineError("the text detector failed: out of memory")
        row, column = np.nonzero((rgb > 250).all(axis=2))
        if not row.size:
            return []
        left, top, right, bottom = column.min(), row.min(), column.max(), row.max()
        return [Box(np.array([[left, top], [right, top], [right, bottom], [left, bottom]], np.float32), 0.75)]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> WhiteIsText:
    finder = WhiteIsText()
    monkeypatch.setattr("foveate.pipeline.plan.open_detector", lambda settings: finder)
    return finder


def pictures(count: int, speed: int = SPEED) -> list[NDArray[np.uint8]]:
    """A white sign on textured grey, all of which moves to the right."""
    random = np.random.default_rng(3)
    coarse = random.integers(40, 200, (HEIGHT // 32, (WIDTH + 400) // 32), np.uint8)
    wide = cv2.resize(coarse, (WIDTH + 400, HEIGHT), interpolation=cv2.INTER_CUBIC).clip(0, 200)
    sign = np.full((32, 64), 255, np.uint8)
    cv2.putText(sign, "OPEN", (4, 24), cv2.FONT_HERSHEY_SIMPLEX, 0.7, 0, 3)
    wide[SIGN[0], 400 + SIGN[1].start : 400 + SIGN[1].stop] = sign
    return [wide[:, 400 - speed * index :][:, :WIDTH].copy() for index in range(count)]


def frames(count: int, live: bool = False, speed: int = SPEED) -> Iterator[Frame]:
    for index, luma in enumerate(pictures(count, speed)):
        times = LiveTimes(index / 25, index / 25) if live else None
        yield Frame(index, index / 25, luma, None, Colour(full_range=True), live=times)


def chosen(shown: Iterator[Frame], **settings: Any) -> Iterator[Selection]:
    engine = CpuEngine(plan_stream(Settings.model_validate({"text": "ocr", "maps": ("text",), **settings})), Feedback())
    for step in engine.cascade(engine.pyramid(engine.upload(shown))):
        yield step.selection


def sign(frame: int) -> tuple[int, int]:
    """The sign's first and last column of cells."""
    left = SIGN[1].start + SPEED * frame
    return left // 16, (left + 63) // 16


def test_text_is_carried_with_what_moves_and_looked_for_every_so_many_frames(stand_in: WhiteIsText) -> None:
    selections = list(chosen(frames(9), ocr={"interval": 6}))
    assert [selection.extras["text_age"] for selection in selections] == [0, 1, 2, 3, 4, 5, 0, 1, 2]
    assert stand_in.looks == 2
    for index, selection in enumerate(selections):
        found = selection.maps["text"]
        first, last = sign(index)
        marked = np.flatnonzero((found >= 0.3).any(axis=0))
        assert abs(marked.min() - first) <= 1, index  # the flow is not exact to a cell's half
        assert abs(marked.max() - last) <= 1, index
        assert found[6:8, first + 1 : last] == pytest.approx(0.75, abs=0.02), index
        assert not found[:5].any()
        assert not found[9:].any()


def test_a_picture_that_rests_is_looked_at_once_and_grows_old(stand_in: WhiteIsText) -> None:
    selections = list(chosen(frames(8, speed=0), ocr={"interval": 2}, change={"keyframe_interval": 100}))
    assert stand_in.looks == 1
    assert [selection.extras["text_age"] for selection in selections] == list(range(8))


def test_the_thread_is_its_own_and_ends_with_the_stream(stand_in: WhiteIsText) -> None:
    stream = chosen(frames(4))
    next(stream)
    (name,) = stand_in.threads
    assert name.startswith("foveate-text")
    assert any(thread.name == name for thread in threading.enumerate())
    stream.close()  # type: ignore[attr-defined]
    assert all(thread.name != name for thread in threading.enumerate())


def test_a_slow_detector_stalls_no_live_stream_and_its_answer_is_carried_to_the_present(stand_in: WhiteIsText) -> None:
    stand_in.gate.clear()
    stream = chosen(frames(20, live=True))
    waiting = list(islice(stream, 5))
    assert [selection.extras for selection in waiting] == [{"text_age": None}] * 5
    assert not any(selection.maps["text"].any() for selection in waiting)
    stand_in.gate.set()
    seen = None
    for selection in stream:
        threading.Event().wait(0.02)
        if selection.extras["text_age"] is not None:
            seen = selection
            break
    assert seen is not None
    assert seen.extras["text_age"] == seen.index  # it has looked at the first frame
    middle = sum(sign(seen.index)) // 2
    assert seen.maps["text"][6:8, middle] == pytest.approx(0.75, abs=0.02)
    stream.close()  # type: ignore[attr-defined]


def test_a_detector_that_fails_is_told_once_and_ends_nothing(
    stand_in: WhiteIsText, caplog: pytest.LogCaptureFixture
) -> None:
    stand_in.faults = 100
    with caplog.at_level(logging.WARNING, "foveate"):
        failing = list(chosen(frames(5)))
    assert caplog.messages == ["the text detector failed: out of memory; its earlier results stay in use"]
    assert [selection.extras["text_age"] for selection in failing] == [None] * 5
    assert all(len(selection) for selection in failing)


def test_after_a_fault_it_is_asked_again_and_older_text_serves_meanwhile(stand_in: WhiteIsText) -> None:
    stream = chosen(frames(9), ocr={"interval": 3})
    selections = [next(stream)]
    stand_in.faults = 2
    selections += stream
    assert [selection.extras["text_age"] for selection in selections] == [0, 1, 2, 3, 4, 0, 1, 2, 0]
    middle = sum(sign(4)) // 2
    assert selections[4].maps["text"][6:8, middle] == pytest.approx(0.75, abs=0.02)


@pytest.fixture
def clip(tmp_path: Path) -> str:
    for index, picture in enumerate(pictures(6)):
        cv2.imwrite(str(tmp_path / f"f_{index}.png"), picture)
    return str(tmp_path / "f_%d.png")


def test_a_query_for_text_goes_where_the_detector_finds_it(stand_in: WhiteIsText, clip: str) -> None:
    runs = []
    for _ in range(2):
        with open_stream(clip, engine="cpu", text="ocr", query=("text",), budget=60, maps=("text", "clip13")) as stream:
            runs.append(list(stream))
    for selection, again in zip(*runs, strict=True):
        assert np.array_equal(selection.x, again.x)  # files wait for each look
        assert selection.extras == again.extras
        assert np.array_equal(selection.maps["text"], selection.maps["clip13"])
        first, last = sign(selection.index)
        fine = selection.lod == 0
        cells = set(zip((selection.y[fine] // 16).tolist(), (selection.x[fine] // 16).tolist(), strict=True))
        assert {(row, column) for row in (6, 7) for column in range(first + 1, last)} <= cells


def test_it_does_not_look_before_text_is_asked_for(stand_in: WhiteIsText, clip: str) -> None:
    with open_stream(clip, engine="cpu", text="ocr", query=("dark",), ocr={"interval": 10}) as stream:
        selections = []
        for selection in stream:
            selections.append(selection)
            if selection.index == 0:
                assert stand_in.looks == 0
                stream.set_query(["text"])
    ages = [selection.extras.get("text_age", "not read") for selection in selections]
    asked = next(index for index, selection in enumerate(selections) if "query" in selection.extras)
    assert ages == ["not read"] * asked + list(range(6 - asked))


@pytest.mark.parametrize(
    ("settings", "detects"),
    [
        ({}, False),
        ({"maps": ("text",)}, True),
        ({"query": ("red",)}, True),  # another query may ask for it later on
        ({"keep_embeddings": True}, True),
        ({"query": ("red",), "encoder": "open_clip"}, False),
        ({"query": ("red",), "encoder": "open_clip", "maps": ("text",)}, True),
        ({"query": ("text",), "text": "strokes"}, False),
    ],
)
def test_a_detector_is_loaded_only_where_text_may_be_read(
    settings: dict[str, Any], detects: bool, stand_in: WhiteIsText, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foveate.pipeline.plan.stream_query", lambda settings: None)  # it loads a model
    plan = plan_stream(Settings.model_validate({"text": "ocr", **settings}))
    assert plan.detector is (stand_in if detects else None)


def test_strokes_are_not_counted_where_the_detector_alone_is_read(
    stand_in: WhiteIsText, clip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("nothing reads them")

    monkeypatch.setattr("foveate.pipeline.cpu.pyramid.AttributeStack", never)
    with open_stream(clip, engine="cpu", text="ocr", maps=("text",)) as stream:
        assert all(selection.maps["text"].any() for selection in stream)


def test_the_record_has_the_age_and_the_header_the_setting(stand_in: WhiteIsText, clip: str, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    flags = ["--text", "ocr", "--ocr.interval", "3", "--query", "text", "-q", "-o", str(out)]
    assert main(["run", clip, "--engine", "cpu", *flags]) == 0
    header, *records = out.read_text().splitlines()
    assert json.loads(header)["config"]["text"] == "ocr"
    assert [json.loads(record)["text_age"] for record in records] == [0, 1, 2, 0, 1, 2]
