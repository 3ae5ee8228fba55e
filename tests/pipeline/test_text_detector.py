"""The text detector on letters beside railings and leaves, against strokes; and what is missing or broken."""

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.app.main import main
from foveate.pipeline import open_stream
from foveate.pipeline.errors import EngineError
from foveate.pipeline.settings import OcrSettings
from foveate.pipeline.text import detector
from foveate.pipeline.text.boxes import at_cells
from foveate.pipeline.text.detector import MODEL, open_detector

CLIP = str(Path(__file__).parents[2] / "sample_videos" / "tree.mp4")
ROWS, COLUMNS = 30, 40  # cells of 640 x 480
BELOW = 15  # the first row of cells of railings, on the left, and leaves, on the right
WORDS = ("CITY LIBRARY", "open daily 9 to 5", "Main Street 42")
MARKED = 0.5


@pytest.fixture
def extra() -> None:
    pytest.importorskip("onnxruntime", reason="needs pip install -e '.[ocr]'")
    pytest.importorskip("rapidocr", reason="needs pip install -e '.[ocr]'")


def cells(pixels: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return pixels.reshape(ROWS, 16, COLUMNS, 16).any(axis=(1, 3))


def scene(seed: int) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A picture, and the cells in which there are letters."""
    random = np.random.default_rng(seed)
    picture = np.full((480, 640, 3), random.integers(150, 220), np.uint8)
    gap, bar, shade = int(random.integers(8, 16)), int(random.integers(2, 6)), int(random.integers(10, 80))
    for left in range(0, 320, gap):
        picture[16 * BELOW :, left : left + bar] = shade
    picture[16 * BELOW :, 320:] = leaves(random)
    letters = np.zeros((480, 640), np.bool_)
    for bottom, scale, thickness in ((80, 1.6, 4), (150, 1.0, 2), (200, 0.6, 1)):
        words, left = WORDS[random.integers(3)], int(random.integers(10, 100))
        (width, height), _ = cv2.getTextSize(words, cv2.FONT_HERSHEY_SIMPLEX, scale, thickness)
        place = (left, bottom), cv2.FONT_HERSHEY_SIMPLEX, scale, (20, 20, 20), thickness, cv2.LINE_AA
        cv2.putText(picture, words, *place)
        letters[bottom - height : bottom, left : left + width] = True
    return picture, cells(letters)


def leaves(random: np.random.Generator) -> NDArray[np.uint8]:
    picture = np.full((240, 320, 3), (40, 70, 35), np.uint8)
    for _ in range(900):
        green = tuple(int(part) for part in random.integers((20, 60, 20), (90, 170, 80)))
        centre = int(random.integers(320)), int(random.integers(240))
        sides = int(random.integers(4, 10)), int(random.integers(2, 5))
        cv2.ellipse(picture, centre, sides, float(random.integers(180)), 0, 360, green, -1, cv2.LINE_AA)
    return picture


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize("seed", range(6))
def test_letters_are_found_and_railings_and_leaves_are_not(seed: int) -> None:
    picture, letters = scene(seed)
    found = at_cells(open_detector(OcrSettings())(picture), ROWS, COLUMNS, 16) >= MARKED
    assert (found & letters).sum() >= 0.9 * letters.sum()
    rim = cv2.dilate(letters.astype(np.uint8), np.ones((3, 3), np.uint8)) > 0  # a box has a margin of half a letter
    assert (found & rim).sum() >= 0.9 * found.sum()
    assert not found[BELOW:].any()


@pytest.mark.usefixtures("extra")
def test_where_strokes_take_railings_for_letters_the_detector_does_not(tmp_path: Path) -> None:
    picture, letters = scene(0)
    cv2.imwrite(str(tmp_path / "scene.png"), picture[..., ::-1])
    found = {}
    for way in ("strokes", "ocr"):
        with open_stream(str(tmp_path / "scene.png"), engine="cpu", text=way, maps=("text",)) as stream:
            (selection,) = stream
        assert selection.extras == ({"text_age": 0} if way == "ocr" else {})
        found[way] = selection.maps["text"] >= MARKED
    assert found["strokes"][BELOW + 1 :, :20].mean() > 0.5
    assert not found["ocr"][BELOW:].any()
    assert (found["ocr"] & letters).sum() >= 0.9 * letters.sum()


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize("size", [(1, 1), (1, 700), (33, 17), (1100, 40)])
def test_pictures_of_any_size_are_taken(size: tuple[int, int]) -> None:
    find = open_detector(OcrSettings(resolution=320, threads=1))
    assert find(np.full((*size, 3), 128, np.uint8)) == []


@pytest.mark.usefixtures("extra")
@pytest.mark.parametrize("resolution", [None, 640, 2048])
def test_boxes_are_in_pixels_of_the_video_however_it_is_scaled(resolution: int | None) -> None:
    picture = np.full((1440, 1920, 3), 200, np.uint8)
    cv2.putText(picture, "CITY LIBRARY", (700, 1000), cv2.FONT_HERSHEY_SIMPLEX, 3.0, (20, 20, 20), 8, cv2.LINE_AA)
    (width, height), _ = cv2.getTextSize("CITY LIBRARY", cv2.FONT_HERSHEY_SIMPLEX, 3.0, 8)
    (box,) = open_detector(OcrSettings(resolution=resolution))(picture)
    assert box.corners.mean(axis=0) == pytest.approx([700 + width / 2, 1000 - height / 2], abs=height / 2)
    assert np.ptp(box.corners, axis=0) == pytest.approx([width, height], abs=height)


@pytest.mark.parametrize("package", ["onnxruntime", "rapidocr"])
def test_without_the_extra_one_line_says_what_brings_it(
    package: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None if package == "onnxruntime" else Broken)
    monkeypatch.setattr(detector, "find_spec", lambda name: None)
    assert main(["run", CLIP, "--text", "ocr", "--query", "text"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"text 'ocr' needs {package}: pip install " in line
    assert "[ocr]'" in line
    assert line.endswith(", or use --text strokes")


class Broken:
    """Stands for onnxruntime, with a model that cannot be read, or does not run."""

    loads = False

    class SessionOptions:
        def add_session_config_entry(self, key: str, value: str) -> None: ...

    class InferenceSession:
        def __init__(self, path: str, options: Any, providers: list[str]) -> None:
            if not Broken.loads:
                raise RuntimeError("no such operator\nmore of it")

        def get_inputs(self) -> list[Any]:
            return [SimpleNamespace(name="x")]

        def run(self, *_: Any) -> Any:
            raise RuntimeError("out of memory\nmore of it")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for rapidocr: the place of its model, which is not there yet."""
    monkeypatch.setitem(sys.modules, "onnxruntime", Broken)
    monkeypatch.setattr(detector, "find_spec", lambda name: ModuleSpec(name, None, origin=str(tmp_path / "a.py")))
    (tmp_path / "models").mkdir()
    return tmp_path / "models" / MODEL


def test_a_package_without_the_model_is_told(package: Path) -> None:
    with pytest.raises(EngineError, match=f"the package rapidocr has no {MODEL}: pip install"):
        open_detector(OcrSettings())


def test_a_model_that_cannot_be_read_or_run_is_told_in_a_line(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package.touch()
    with pytest.raises(EngineError) as error:
        open_detector(OcrSettings())
    assert str(error.value) == f"the text detector {package} cannot be loaded: no such operator"
    monkeypatch.setattr(Broken, "loads", True)
    with pytest.raises(EngineError) as error:
        open_detector(OcrSettings())(np.zeros((32, 32, 3), np.uint8))
    assert str(error.value) == "the text detector failed: out of memory"
