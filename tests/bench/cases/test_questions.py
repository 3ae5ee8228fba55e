"""Questions in the fields of published files, answers read and kept, and the interval of a share. No model needed."""

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.bench.cases.answers import Answers
from foveate.bench.cases.model_inputs import Method
from foveate.bench.cases.questions import Question, read_questions
from foveate.bench.records.interval import wilson
from foveate.pipeline.errors import SourceError

PLAIN = {"video": "clip.mp4", "question": "Who?", "options": ["He", "She"], "answer": "B"}
VIDEO_MME = {
    "video_id": "001", "duration": "short", "domain": "Knowledge", "sub_category": "History", "url": "https://x",
    "videoID": "clip", "question_id": "001-1", "task_type": "Counting", "question": "How many?",
    "options": ["A. One.", "B. Two.", "C. Three.", "D. A. D."], "answer": "C",
}  # fmt: skip
MVBENCH = {
    "video": "clip.mp4", "question": "What happened?", "candidates": ["Ate it.", "Tidied up.", "Took it."],
    "answer": "Took it.", "start": 1.5, "end": 7,
}  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "clip.mp4").touch()
    return tmp_path / "questions.jsonl"


def read(file: Path, *entries: Any, listed: bool = False) -> list[Question]:
    file.write_text(json.dumps(entries) if listed else "".join(f"{json.dumps(entry)}\n" for entry in entries))
    return read_questions(file, file.parent)


def test_the_published_fields(file: Path) -> None:
    clip = file.parent / "clip.mp4"
    assert read(file, PLAIN, VIDEO_MME, MVBENCH) == [
        Question("1", clip, "Who?", ("He", "She"), "B"),
        Question("001-1", clip, "How many?", ("One.", "Two.", "Three.", "A. D."), "C"),
        Question("3", clip, "What happened?", ("Ate it.", "Tidied up.", "Took it."), "C", 1.5, 7.0),
    ]


def test_a_list_as_mvbench_is_published(file: Path) -> None:
    assert [each.right for each in read(file, MVBENCH, PLAIN, listed=True)] == ["C", "B"]


def test_the_prompt(file: Path) -> None:
    (question,) = read(file, VIDEO_MME | {"options": ["A. One.", "B. Two."], "answer": "A"})
    lines = ["How many?", "A. One.", "B. Two.", "Answer with the letter of the correct option only."]
    assert question.prompt.splitlines() == lines


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"q": "?"}, "it must have a text 'question', got None; its fields are ['q']"),
        ([1], "it must be an object with fields, got '[1]'"),
        ({**PLAIN, "options": "A B"}, "it must have 'options' or 'candidates', a list of texts"),
        ({**PLAIN, "options": ["He"]}, "it must have 2 to 10 options, got 1"),
        ({**PLAIN, "answer": "C"}, "its answer must be a letter from A to B, got 'C'"),
        ({**PLAIN, "answer": "She"}, "its answer must be a letter from A to B, got 'She'"),
        ({**MVBENCH, "answer": "Left."}, "its answer must be one of its candidates, got 'Left.'"),
        ({**PLAIN, "video": "gone.mp4"}, "gone.mp4'; --videos DIR says where the videos are"),
        ({**MVBENCH, "end": 1}, "end must be after start, 1.5 s, got 1 s"),
        ({**MVBENCH, "start": "1"}, "start must be seconds from 0 on, got '1'"),
    ],
)
def test_others_are_refused_in_one_line(entry: Any, why: str, file: Path) -> None:
    with pytest.raises(SourceError) as refused:
        read(file, PLAIN, entry)
    said = str(refused.value)
    assert said.startswith(f"{file}: question 2: ")
    assert why in said
    assert "\n" not in said


def test_files_that_hold_none(file: Path) -> None:
    for content, why in (
        (b"", "holds no question"),
        (b"a,b\n", "neither JSON lines nor"),
        (b"PAR1\xff", "is not text"),
    ):
        file.write_bytes(content)
        with pytest.raises(SourceError, match=why):
            read_questions(file, file.parent)
    with pytest.raises(SourceError, match="2 questions are named '001-1'"):
        read(file, VIDEO_MME, VIDEO_MME)


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("B", "B"), (" (C) because", "C"), ("A. One.", "A"), ("The answer is D.", "D"), ("Answer: (B)", "B"),
        ("two", "B"), ("A man walks", None), ("E", None), ("", None), ("b", None),
    ],
)  # fmt: skip
def test_the_letter_of_an_answer(said: str, letter: str | None, file: Path) -> None:
    (question,) = read(file, VIDEO_MME)
    assert question.letter_in(said) == letter


def test_wilson() -> None:
    """The bounds p solve |share - p| = z * sqrt(p * (1 - p) / n), by definition of the score interval."""
    for right, count in ((0, 10), (3, 10), (10, 10), (612, 900)):
        low, high = wilson(right, count)
        for bound in (low, high):
            assert (right / count - bound) ** 2 == pytest.approx(1.959964**2 * bound * (1 - bound) / count, abs=1e-12)
        assert low <= right / count <= high
    assert wilson(0, 0) == (0.0, 1.0)


ONE = {"question": "1", "method": "random", "budget": 17, "right": True}


def test_answers_are_kept_and_a_line_cut_off_is_written_over(tmp_path: Path) -> None:
    path, about = tmp_path / "answers.jsonl", {"model": "m", "fps": 1.0}
    with Answers(path, about) as answers:
        answers.add(ONE)
    with path.open("a") as file:
        file.write('{"question": "2", "meth')
    with Answers(path, about) as answers:
        assert answers.get("1", Method("random", 17)) == ONE
        assert answers.get("2", Method("random", 17)) is answers.get("1", Method("random", 34)) is None
        answers.add(ONE | {"question": "2"})
    assert [json.loads(line) for line in path.read_text().splitlines()] == [about, ONE, ONE | {"question": "2"}]


def test_answers_of_something_else_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    with Answers(path, {"model": "m", "fps": 1.0}) as answers:
        answers.add(ONE)
    before = path.read_bytes()
    with pytest.raises(SourceError, match="answers with another fps; name another file with --answers"):
        Answers(path, {"model": "m", "fps": 2.0})
    assert path.read_bytes() == before
    path.write_text("not\nthis\n")
    with pytest.raises(SourceError, match="is no file of answers"):
        Answers(path, {"model": "m"})
