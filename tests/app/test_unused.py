"""Maps and patches that no output holds are told, once."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest

from foveate.app.main import main


@pytest.mark.parametrize(
    ("flags", "outputs", "told"),
    [
        (["--maps", "score"], ["a.jsonl"], "--maps has no effect"),
        (["--patches"], ["a.jsonl"], "--patches has no effect"),
        (["--maps", "score", "--patches"], ["a.ndjson", "b.jsonl"], "--maps and --patches have no effect"),
        (["--maps", "score", "--patches"], ["a.jsonl", "b.npz"], None),
        (["--patches"], ["a.safetensors"], None),
        ([], ["a.jsonl"], None),
    ],
)
def test_what_no_output_holds_is_told_once(
    flags: list[str],
    outputs: list[str],
    told: str | None,
    picture: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = [str(tmp_path / name) for name in outputs]
    assert main(["run", picture, *flags, "-q", "--out", *names]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "effect" in line]
    assert len(lines) == (told is not None)
    assert told is None or f"foveate: warning: {told} on these outputs" in lines[0]


def test_a_sheet_of_channels_shows_its_maps(picture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = ["--show-channels", str(tmp_path / "sheet.png")]
    assert main(["run", picture, *sheet, "-q", "-o", str(tmp_path / "a.jsonl")]) == 0
    assert "effect" not in capsys.readouterr().err


def test_the_header_names_the_libraries_that_scores_depend_on(picture: str, tmp_path: Path) -> None:
    output = tmp_path / "a.jsonl"
    assert main(["run", picture, "-q", "-o", str(output)]) == 0
    header = json.loads(output.read_text().splitlines()[0])
    assert header["libraries"] == {"numpy": np.__version__, "opencv": cv2.__version__}
