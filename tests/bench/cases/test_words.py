"""Counting words, with readers that need no model."""

import json
from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.words import found, reader, words, words_table
from foveate.bench.entry import exit_code
from foveate.bench.scenes.text import TEXT_SCENES


def test_words_count_as_often_as_they_stand() -> None:
    assert found(["river", "river", "lamp"], "River, lamp. river river") == 3
    assert found(["river", "river", "lamp"], "rivers lam") == 0
    assert found([], "river") == 0


def test_the_command_counts_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader that reads all words of a light page, and none of one that is grey."""
    told = " ".join(next(TEXT_SCENES["slides"].frames(1))[1])
    monkeypatch.setattr("foveate.bench.cases.words.reader", lambda: lambda rgb: told if rgb.mean() > 200 else "")
    out = tmp_path / "words.json"
    flags = ["--scenes", "slides", "--frames", "2", "--every", "1", "--budget", "400", "--out", str(out)]
    assert exit_code(words, flags) == 0
    record = json.loads(out.read_text())
    shares = {case["method"]: case["share"] for case in record["cases"]}
    assert record["complete"] is True
    assert {case["words"] for case in record["cases"]} == {2 * 39}
    assert shares["whole frame"] == shares["downscale"] == 1
    assert list(shares)[-1] == "Foveate, stream, --query text"
    assert "| whole frame | 100 |" in words_table(record)


def test_a_scene_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(words, ["--scenes", "opera"]) == 2
    assert "--scenes must be among slides, scroll, captions, terminal, street, got 'opera'" in capsys.readouterr().err


def test_the_model_reads(samples: Path) -> None:
    pytest.importorskip("rapidocr", reason="needs pip install -e '.[ocr]'")
    picture, told = next(TEXT_SCENES["slides"].frames(1))
    assert found(told[:9], reader()(np.ascontiguousarray(picture[:250]))) == 9
