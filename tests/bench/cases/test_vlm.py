"""The accuracy harness from end to end, with a small model of random weights, whose accuracy means nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.bench.cases.vlm import vlm
from foveate.bench.entry import exit_code

ENTRIES: list[dict[str, Any]] = [
    {"videoID": "tiny", "question_id": "t-1", "question": "What moves?", "options": ["A. X", "B. Y"], "answer": "B"},
    {"video": "tiny.mp4", "question": "Which?", "candidates": ["one", "two", "six"], "answer": "six"},
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the family Qwen2.5-VL, and its processor, as transformers keeps them."""
    pytest.importorskip("torch", reason="needs the extra vlm")
    pytest.importorskip("transformers", minversion="5.18", reason="needs the extra vlm")
    pytest.importorskip("torchvision", reason="needs the extra vlm")
    from tests.models.folder import model_folder

    return model_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture
def asked(tmp_path: Path, tiny_clip: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.mp4").symlink_to(tiny_clip)
    file = tmp_path / "questions.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in ENTRIES))
    return file


def test_it_answers_all_and_then_only_what_is_missing(
    folder: Path, asked: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--model", str(folder), "--questions", str(asked), "--budgets", "2", "4", "--frames", "2", "--fps", "5"]
    assert exit_code(vlm, [*flags, "--out", "one.json"]) == 0
    said = capsys.readouterr().err.splitlines()
    assert "the accuracy of random weights means nothing" in said[0]
    assert sum(line.startswith("answered ") for line in said) == 2
    record = json.loads(Path("one.json").read_text())
    lines = [json.loads(line) for line in Path("vlm_answers.jsonl").read_text().splitlines()]
    assert len(lines) == 1 + 2 * 11
    assert {(each["question"], each["frames"]) for each in lines[1:]} == {("t-1", 2), ("2", 2)}
    assert record["guessing"] == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert [(case["method"], case["budget"]) for case in record["cases"][:2]] == [
        ("all patches", None),
        ("downscale", 2),
    ]
    for case in record["cases"]:
        mine = [each for each in lines[1:] if (each["method"], each["budget"]) == (case["method"], case["budget"])]
        assert (case["questions"], case["right"]) == (2, sum(each["right"] for each in mine))
        assert case["interval"][0] <= case["accuracy"] <= case["interval"][1]
        assert case["tokens_per_frame"] <= (case["budget"] or 6)
    assert record["cases"][0]["tokens_per_frame"] == 6  # 96x64 in groups of 32 pixels

    kept = Path("vlm_answers.jsonl").read_text().splitlines(keepends=True)
    Path("vlm_answers.jsonl").write_text("".join(kept[:-3]) + kept[-3][:20])
    assert exit_code(vlm, [*flags, "--out", "two.json"]) == 0
    assert [line for line in capsys.readouterr().err.splitlines() if "answered" in line] == ["answered 2 of 2: 2"]
    again = Path("vlm_answers.jsonl").read_text().splitlines(keepends=True)
    assert again[:-3] == kept[:-3]
    assert len(again) == len(kept)
    assert json.loads(Path("two.json").read_text())["cases"] == record["cases"]

    assert exit_code(vlm, [*flags, "--frames", "1"]) == 1
    assert capsys.readouterr().err.endswith("answers with another frames; name another file with --answers\n")


def test_more_than_the_models_context_is_one_line(
    folder: Path, asked: Path, samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = ENTRIES[1] | {"video": str(samples / "pedestrians.mp4")}
    asked.write_text(json.dumps(entry))
    assert exit_code(vlm, ["--model", str(folder), "--questions", str(asked), "--frames", "12", "--fps", "25"]) == 1
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("foveate: error: the prompt has ")
    assert "the model's context 4096; ask about fewer frames" in last


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--budgets", "17", "17"], "--budgets must be different numbers, at least one, got [17, 17]"),
        (["--budgets", "0"], "--budgets must be at least 1, got 0"),
        (["--frames", "0"], "--frames must be at least 1, got 0"),
        (["--fps", "0"], "--fps must be from 1e-5 to 1000, got 0"),
        ([], "--model must be a folder with a model, got 'none'"),
    ],
)
def test_wrong_arguments(flags: list[str], why: str, asked: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(vlm, ["--model", "none", "--questions", str(asked), *flags]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"foveate: error: {why}"


def test_of_gemma_4_tokens_are_groups_of_nine(folder: Path, asked: Path) -> None:
    from tests.models.folder import model_folder

    made = asked.parent / "gemma4"
    made.mkdir()
    flags = ["--model", str(model_folder(made, "gemma4")), "--questions", str(asked), "--budgets", "2"]
    assert exit_code(vlm, [*flags, "--frames", "2", "--fps", "5", "--out", "one.json"]) == 0
    counts = {case["method"]: case["tokens_per_frame"] for case in json.loads(Path("one.json").read_text())["cases"]}
    assert counts.pop("all patches") == 4  # 96x64 in groups of 48 pixels
    assert 0 < min(counts.values()) <= max(counts.values()) <= 2
