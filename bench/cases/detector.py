"""Runs object detectors in ONNX whose outputs are boxes."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.bench.clips.footage import Plane
from foveate.pipeline.errors import EngineError, SourceError
from foveate.pipeline.extras import install_command

OVERLAP: Final = 0.5
"""Intersection over union from which on two boxes of one class count as one object."""
_PADDING: Final = 114  # grey level around a picture that is fitted into a square, as YOLO models are trained

Numbers = NDArray[np.float32]


class Detections(NamedTuple):
    """Boxes float32[n, 4]: left, top, right, bottom in pixels; scores float32[n] in [0, 1], falling; classes int[n]."""

    boxes: Numbers
    scores: Numbers
    classes: NDArray[np.int64]


class Session(Protocol):
    """The part of onnxruntime.InferenceSession that is used."""

    def get_inputs(self) -> Sequence[Any]: ...
    def get_outputs(self) -> Sequence[Any]: ...
    def run(self, names: None, inputs: Mapping[str, Any]) -> Sequence[Any]: ...


class Detector:
    """Runs a model on whole pictures, or on overlapping squares of them, which finds smaller things."""

    def __init__(self, session: Session, least: float, tile: int = 0) -> None:
        """``least``: the lowest score that counts. ``tile``: side of the squares in pixels; 0: the whole picture.

        Raises SourceError for a model of another kind.
        """
        self._session, self._least, self._tile = session, least, tile
        self._input = session.get_inputs()[0]
        self._names = [output.name for output in session.get_outputs()]
        parts = {part: name for name in self._names for part in ("boxes", "scores", "classes") if part in name}
        self._parts = parts if len(parts) == 3 else None
        if self._parts is None and not (len(self._names) == 1 and len(self._input.shape) == 4):
            raise SourceError(
                "the model is no detector of a kind that is understood: outputs named boxes, scores and classes (the "
                f"TensorFlow Object Detection API), or one of [1, 4 + classes, n] (YOLO); it has {self._names}"
            )

    def find(self, rgb: Plane) -> Detections:
        """The objects in R'G'B', uint8[H, W, 3], each once."""
        parts = [self._shifted(self._find(rgb[cut]), cut) for cut in tiles(rgb.shape[0], rgb.shape[1], self._tile)]
        return suppress_overlaps(Detections(*(np.concatenate(each) for each in zip(*parts, strict=True))))

    def _find(self, rgb: Plane) -> Detections:
        found = self._of_api(rgb) if self._parts else self._of_yolo(rgb)
        sure = found.scores >= self._least
        return Detections(found.boxes[sure], found.scores[sure], found.classes[sure])

    def _of_api(self, rgb: Plane) -> Detections:
        """Boxes are top, left, bottom, right as shares of the picture."""
        assert self._parts is not None
        outputs = dict(zip(self._names, self._session.run(None, {self._input.name: rgb[None]}), strict=True))
        boxes, scores, classes = (outputs[self._parts[part]][0] for part in ("boxes", "scores", "classes"))
        height, width = rgb.shape[:2]
        corners = boxes[:, [1, 0, 3, 2]] * np.array([width, height, width, height], np.float32)
        return Detections(np.asarray(corners, np.float32), scores, classes.astype(np.int64))

    def _of_yolo(self, rgb: Plane) -> Detections:
        """Boxes are centre, width and height in pixels of the model's square, then one score for each class."""
        side = self._input.shape[2] if isinstance(self._input.shape[2], int) else 640
        scale = side / max(rgb.shape[:2])
        small = cv2.resize(rgb, None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR)
        square = np.full((side, side, 3), _PADDING, np.uint8)
        square[: small.shape[0], : small.shape[1]] = small[:side, :side]
        given = (square.transpose(2, 0, 1)[None] / np.float32(255)).astype(np.float32)
        (output,) = self._session.run(None, {self._input.name: given})
        rows = output[0].T
        centre, half = rows[:, :2], rows[:, 2:4] / 2
        corners = np.concatenate([centre - half, centre + half], axis=1) / np.float32(scale)
        return Detections(np.asarray(corners, np.float32), rows[:, 4:].max(axis=1), rows[:, 4:].argmax(axis=1))

    def _shifted(self, found: Detections, cut: tuple[slice, slice]) -> Detections:
        left, top = cut[1].start, cut[0].start
        return found._replace(boxes=found.boxes + np.array([left, top, left, top], np.float32))


def open_detector(path: Path, least: float, tile: int) -> Detector:
    """The model in a file. Raises EngineError without onnxruntime, SourceError for a file that it cannot read."""
    try:
        import onnxruntime
    except ImportError as error:
        raise EngineError(f"detectors are run by onnxruntime: {install_command('ocr')} ({error})") from None
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    try:
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001, its classes are not public
        raise SourceError(f"{path}: {str(error).splitlines()[0]}") from None
    return Detector(session, least, tile)


def tiles(height: int, width: int, side: int) -> Iterator[tuple[slice, slice]]:
    """Squares that cover the picture and overlap by a quarter at least; ``side`` 0: the whole picture."""
    if side == 0:
        yield slice(0, height), slice(0, width)
        return
    for top in _starts(height, side):
        for left in _starts(width, side):
            yield slice(top, min(top + side, height)), slice(left, min(left + side, width))


def _starts(length: int, side: int) -> list[int]:
    count = max(1, -(-(length - side) * 4 // (3 * side)) + 1)
    return [place * max(length - side, 0) // max(count - 1, 1) for place in range(count)]


def suppress_overlaps(found: Detections) -> Detections:
    """Non-maximum suppression: without boxes that overlap one of their class with a higher score; by falling score."""
    order = np.argsort(-found.scores, kind="stable")
    kept: list[int] = []
    for place in order.tolist():
        same = [other for other in kept if found.classes[other] == found.classes[place]]
        if not same or overlaps(found.boxes[place], found.boxes[same]).max() < OVERLAP:
            kept.append(place)
    return Detections(found.boxes[kept], found.scores[kept], found.classes[kept])


def overlaps(box: Numbers, others: Numbers) -> Numbers:
    """Intersection over union of a box with each of float32[n, 4]: float32[n]."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    both = np.prod(np.maximum(sides, 0), axis=1)
    areas = np.prod(others[:, 2:] - others[:, :2], axis=1) + np.prod(box[2:] - box[:2])
    return np.asarray(both / np.maximum(areas - both, 1e-9), np.float32)


def matched(true: Detections, found: Detections) -> int:
    """How many of ``true`` match one of ``found`` each; those with the highest scores choose first."""
    free = list(range(len(found.boxes)))
    count = 0
    for box, kind in zip(true.boxes, true.classes, strict=True):
        same = [place for place in free if found.classes[place] == kind]
        if not same:
            continue
        shares = overlaps(box, found.boxes[same])
        if shares.max() >= OVERLAP:
            free.remove(same[int(shares.argmax())])
            count += 1
    return count
