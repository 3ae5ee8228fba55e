"""Detectors of two kinds, played by sessions that answer the same each time."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foveate.bench.cases.detector import (
    Detections,
    Detector,
    matched,
    open_detector,
    overlaps,
    suppress_overlaps,
    tiles,
)
from foveate.pipeline.errors import SourceError


class Answers:
    """A session that gives ``outputs``, by name, whatever it is shown; it keeps what it was shown."""

    def __init__(self, outputs: Mapping[str, np.ndarray], shape: Sequence[Any]) -> None:
        self.outputs, self.shape = outputs, shape
        self.given: list[np.ndarray] = []

    def get_inputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="in", shape=self.shape)]

    def get_outputs(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(name=name) for name in self.outputs]

    def run(self, names: None, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        self.given.append(inputs["in"])
        return list(self.outputs.values())


def found(*boxes: Sequence[float], score: float = 0.9, kind: int = 1) -> Detections:
    count = len(boxes)
    array = np.array(boxes, np.float32).reshape(count, 4)
    return Detections(array, np.full(count, score, np.float32), np.full(count, kind, np.int64))


def test_boxes_of_the_object_detection_api_are_shares_of_the_picture() -> None:
    outputs = {
        "boxes:0": np.array([[[0.5, 0.25, 1.0, 0.5], [0, 0, 1, 1]]], np.float32),
        "scores:0": np.array([[0.9, 0.4]], np.float32),
        "classes:0": np.array([[3.0, 1.0]], np.float32),
    }
    got = Detector(Answers(outputs, [1, None, None, 3]), least=0.5).find(np.zeros((100, 200, 3), np.uint8))
    assert got.boxes.tolist() == [[50, 50, 100, 100]]  # left, top, right, bottom
    assert got.classes.tolist() == [3]


def test_boxes_of_yolo_are_centres_in_the_models_square() -> None:
    # A picture of 100x200 in a square of 50: a quarter of its size. Class 1 is the likelier one.
    output = np.zeros((1, 6, 2), np.float32)
    output[0, :, 0] = [20, 10, 10, 4, 0.2, 0.8]
    session = Answers({"output0": output}, [1, 3, 50, 50])
    got = Detector(session, least=0.5).find(np.full((100, 200, 3), 255, np.uint8))
    assert got.boxes.tolist() == [[60, 32, 100, 48]]
    assert got.classes.tolist() == [1]
    (given,) = session.given
    assert given.shape == (1, 3, 50, 50)
    assert given[0, 0, 10, 10] == 1
    assert given[0, 0, 40, 10] == np.float32(114) / np.float32(255)  # what the picture does not fill


def test_what_two_squares_show_counts_once() -> None:
    outputs = {
        "boxes": np.array([[[0, 0, 1, 1]]], np.float32),
        "scores": np.array([[0.9]], np.float32),
        "classes": np.array([[1.0]], np.float32),
    }
    session = Answers(outputs, [1, None, None, 3])
    got = Detector(session, least=0.5, tile=40).find(np.zeros((40, 50, 3), np.uint8))
    # Squares from 0 and from 10: they overlap by 30 of 50.
    assert len(session.given) == 2
    assert got.boxes.tolist() == [[0, 0, 40, 40]]


@pytest.mark.parametrize(("height", "width", "side"), [(576, 768, 300), (100, 100, 300), (300, 301, 300), (7, 900, 32)])
def test_squares_cover_the_picture_and_overlap(height: int, width: int, side: int) -> None:
    covered = np.zeros((height, width), int)
    for cut in tiles(height, width, side):
        covered[cut] += 1
    assert covered.min() >= 1
    rows = sorted({cut[0].start for cut in tiles(height, width, side)})
    assert all(later - row <= side * 3 / 4 for row, later in pairwise(rows))


def test_overlap_is_intersection_over_union() -> None:
    box = np.array([0, 0, 10, 10], np.float32)
    others = np.array([[0, 0, 10, 10], [5, 0, 15, 10], [20, 20, 30, 30]], np.float32)
    np.testing.assert_allclose(overlaps(box, others), [1, 1 / 3, 0])


def test_of_two_boxes_on_one_thing_the_surer_stays() -> None:
    pair = zip(found([0, 0, 9, 10], score=0.6), found([0, 0, 10, 10]), strict=True)
    both = Detections(*(np.concatenate(each) for each in pair))
    assert suppress_overlaps(both).boxes.tolist() == [[0, 0, 10, 10]]
    assert len(suppress_overlaps(Detections(both.boxes, both.scores, np.array([1, 2]))).boxes) == 2  # of two classes


def test_each_box_is_matched_once() -> None:
    true = found([0, 0, 10, 10], [1, 0, 11, 10], [50, 50, 60, 60])
    assert matched(true, found([0, 0, 10, 10])) == 1
    assert matched(true, found([0, 0, 10, 10], [2, 0, 12, 10])) == 2
    assert matched(true, found([0, 0, 10, 10], kind=2)) == 0
    assert matched(true, found()) == matched(found(), true) == 0


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(SourceError, match=r"no detector of a kind that is understood.*it has \['logits', 'more'\]"):
        Detector(Answers({"logits": np.zeros(1), "more": np.zeros(1)}, [1, 3, 8, 8]), least=0.5)


def test_a_file_that_is_no_model(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs pip install -e '.[ocr]'")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    for path in (broken, tmp_path / "gone.onnx"):
        with pytest.raises(SourceError, match=path.name):
            open_detector(path, 0.5, 0)
