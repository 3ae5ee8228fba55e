"""The text detector: the model in the package rapidocr, run by onnxruntime. Nothing is downloaded."""

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import cv2
import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.errors import EngineError, first_line
from foveate.pipeline.extras import install_command
from foveate.pipeline.settings import OcrSettings
from foveate.pipeline.text.boxes import Box, boxes_in

Picture = NDArray[np.uint8]
TextDetector = Callable[[Picture], list[Box]]
"""The lines of text in a picture, R'G'B' uint8[H, W, 3]. Raises EngineError if it fails."""

MODEL: Final = "PP-OCRv6_det_small.onnx"
_STRIDE: Final = 32  # the model takes pictures whose sides are multiples of it
_LARGEST: Final = 960  # default samples along the longer side
_MOST_THREADS: Final = 4


def open_detector(settings: OcrSettings) -> TextDetector:
    """The model, ready to run on the CPU. Raises EngineError if the extra or the model is missing or broken."""
    try:
        import onnxruntime
    except ImportError as error:
        raise _missing(error.name or "onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = settings.threads or min(max((os.cpu_count() or 2) - 1, 1), _MOST_THREADS)
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # idle threads do not spin
    model = _model()
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base
        raise EngineError(f"the text detector {model} cannot be loaded: {first_line(error)}") from error
    return _Detector(session, settings.resolution)


def _model() -> Path:
    package = find_spec("rapidocr")  # not imported: only its model file is needed
    if package is None or package.origin is None:
        raise _missing("rapidocr")
    model = Path(package.origin).parent / "models" / MODEL
    if not model.exists():
        raise EngineError(f"the package rapidocr has no {MODEL}: {install_command('ocr')} installs a version with it")
    return model


def _missing(package: str) -> EngineError:
    return EngineError(f"text 'ocr' needs {package}: {install_command('ocr')}, or use --text strokes")


class _Detector:
    """See TextDetector. Called by one thread at a time."""

    def __init__(self, session: Any, longest: int | None) -> None:
        self._session = session
        self._input = session.get_inputs()[0].name
        self._longest = longest

    def __call__(self, rgb: Picture) -> list[Box]:
        height, width = rgb.shape[:2]
        longest = max(height, width)
        scale = (self._longest or min(longest, _LARGEST)) / longest / _STRIDE
        rows, columns = (max(round(side * scale), 1) * _STRIDE for side in (height, width))
        way = cv2.INTER_AREA if columns < width else cv2.INTER_LINEAR
        scaled = np.asarray(cv2.resize(rgb, (columns, rows), interpolation=way), np.float32) / np.float32(127.5) - 1
        planes = np.ascontiguousarray(scaled.transpose(2, 0, 1)[::-1])  # it was trained on B, G, R in [-1, 1]
        try:
            (probability,) = self._session.run(None, {self._input: planes[None]})
        except Exception as error:  # onnxruntime's exceptions have no common base
            raise EngineError(f"the text detector failed: {first_line(error)}") from error
        return boxes_in(np.asarray(probability[0, 0], np.float32), height, width)
