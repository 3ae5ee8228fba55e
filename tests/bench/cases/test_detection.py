"""What is found again, by a detector that sees bright things."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from foveate.bench.case import Clip
from foveate.bench.cases.detection import clip_detection, detection, detection_table
from foveate.bench.cases.detector import Detections
from foveate.bench.entry import exit_code


class Bright:
    """Finds the one bright thing in a picture."""

    def find(self, rgb: np.ndarray) -> Detections:
        rows, columns = np.nonzero(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY) > 170)
        boxes = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
        count = len(boxes)
        return Detections(
            np.array(boxes, np.float32).reshape(count, 4), np.ones(count, np.float32), np.ones(count, np.int64)
        )


def test_the_share_found_again(tiny_clip: Path) -> None:
    cases = clip_detection(Clip("tiny", tiny_clip), 12, Bright(), frames=6, every=3, query="moving")  # type: ignore[arg-type]
    recalls = {case["method"]: case["recall"] for case in cases}
    assert {case["things"] for case in cases} == {2}
    assert recalls["conditional replenishment"] == recalls["Foveate, stream"] == 1
    assert list(recalls)[-1] == "Foveate, stream, --query moving"
    table = detection_table({"cases": cases})
    assert table.startswith("| tiny | 12 tokens |\n|---|---|\n| downscale | ")


@pytest.mark.parametrize(
    ("flags", "rule"),
    [
        (["--budgets", "9", "0"], "--budgets must be at least 1, got 0"),
        (["--least", "0"], "--least must be above 0 and at most 1, got 0.0"),
        (["--tile", "5"], "--tile must be at least 32, got 5"),
    ],
)
def test_numbers_that_cannot_be(flags: list[str], rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(detection, ["--model", "gone.onnx", *flags]) == 2
    assert capsys.readouterr().err == f"foveate: error: {rule}\n"


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="needs pip install -e '.[ocr]'")
    assert exit_code(detection, ["--model", "gone.onnx"]) == 1
    assert capsys.readouterr().err == "foveate: error: gone.onnx: no such file\n"
