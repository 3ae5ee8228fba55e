"""Multiple-choice questions about videos, from a file of JSON lines or one JSON list.

Three kinds of entries are read, told apart by their fields. ``start`` and ``end``, in seconds, are always optional.

| kind | video | options | answer | name |
|---|---|---|---|---|
| plain | ``video`` | ``options`` | ``answer``, a letter | ``id``, optional |
| Video-MME | ``videoID``, without .mp4 | ``options``, such as "A. Two." | ``answer``, a letter | ``question_id`` |
| MVBench | ``video`` | ``candidates`` | ``answer``, one of the candidates | |
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from foveate.pipeline.errors import SourceError

LETTERS: Final = "ABCDEFGHIJ"
_ASK: Final = "Answer with the letter of the correct option only."
_LETTER = re.compile(r"\W*([A-J])(?:\s*$|[.):,])|(?i:.*\banswer(?:\s+is)?\s*:?\s*)\(?([A-J])\b", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options, of which one is right."""

    name: str  # one of a kind in its file
    video: Path
    text: str
    options: tuple[str, ...]  # without letters
    right: str  # the letter
    start: float | None = None  # seconds
    end: float | None = None

    @property
    def prompt(self) -> str:
        """What a model is asked."""
        options = [f"{letter}. {option}" for letter, option in zip(LETTERS, self.options, strict=False)]
        return "\n".join([self.text, *options, _ASK])

    def letter_in(self, answer: str) -> str | None:
        """The letter that a model's answer names, or whose option it repeats; None where it does neither."""
        if (found := _LETTER.match(answer)) is not None:
            letter = found[1] or found[2]
            return letter if letter in LETTERS[: len(self.options)] else None
        said = _plain(answer)
        same = [letter for letter, option in zip(LETTERS, self.options, strict=False) if _plain(option) == said]
        return same[0] if len(same) == 1 else None


def read_questions(path: Path, videos: Path) -> list[Question]:
    """The questions of a file, whose videos lie under ``videos``.

    Raises SourceError for a file that cannot be read, an entry of no kind that is known, an answer that is no option,
    two entries of one name, and a video that is not there.
    """
    questions = []
    for number, entry in _entries(path):
        try:
            questions.append(_question(number, entry, videos))
        except ValueError as error:
            raise SourceError(f"{path}: question {number}: {error}") from None
    if not questions:
        raise SourceError(f"{path} holds no question")
    name, times = Counter(question.name for question in questions).most_common(1)[0]
    if times > 1:
        raise SourceError(f"{path}: {times} questions are named {name!r}; each needs a name of its own")
    return questions


def _entries(path: Path) -> Iterator[tuple[int, Any]]:
    """The entries, counted from 1."""
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SourceError(f"{path} is not text; write it as JSON lines, one question a line") from None
    try:
        if text.lstrip().startswith("["):
            yield from enumerate(json.loads(text), 1)
            return
        for number, line in enumerate((line for line in text.split("\n") if line.strip()), 1):
            yield number, json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise SourceError(f"{path} is neither JSON lines nor a JSON list: {error}") from None


def _question(number: int, entry: Any, videos: Path) -> Question:
    if not isinstance(entry, dict):
        raise ValueError(f"it must be an object with fields, got {str(entry)[:80]!r}")
    text = _text(entry, "question")
    if "videoID" in entry:
        name, video = _text(entry, "question_id"), f"{_text(entry, 'videoID')}.mp4"
    else:
        name, video = str(entry.get("id", number)), _text(entry, "video")
    options, right = _choices(entry)
    path = videos / video
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}; --videos DIR says where the videos are")
    start, end = _seconds(entry, "start"), _seconds(entry, "end")
    if end is not None and end <= (start or 0.0):
        raise ValueError(f"end must be after start, {start or 0:g} s, got {end:g} s")
    return Question(name, path, text, options, right, start, end)


def _choices(entry: Mapping[str, Any]) -> tuple[tuple[str, ...], str]:
    """The options, and the right one's letter."""
    field = "candidates" if "candidates" in entry else "options"
    options = entry.get(field)
    if not isinstance(options, list) or not all(isinstance(option, str) and option.strip() for option in options):
        raise ValueError(f"it must have 'options' or 'candidates', a list of texts; its fields are {sorted(entry)}")
    if not 2 <= len(options) <= len(LETTERS):
        raise ValueError(f"it must have 2 to {len(LETTERS)} {field}, got {len(options)}")
    bare = _without_letters([option.strip() for option in options])
    answer = _text(entry, "answer").strip()
    if field == "candidates":
        if [option.strip() for option in options].count(answer) != 1:
            raise ValueError(f"its answer must be one of its candidates, got {answer!r}")
        return bare, LETTERS[[option.strip() for option in options].index(answer)]
    if len(answer) != 1 or answer not in LETTERS[: len(options)]:
        raise ValueError(f"its answer must be a letter from A to {LETTERS[len(options) - 1]}, got {answer!r}")
    return bare, answer


def _without_letters(options: list[str]) -> tuple[str, ...]:
    """Without "A.", "(B)" and so on, where all options have them."""
    found = [
        re.match(rf"\(?{letter}[.):]\s*(.+)", option, re.DOTALL)
        for letter, option in zip(LETTERS, options, strict=False)
    ]
    return tuple(each[1] for each in found if each) if all(found) else tuple(options)


def _text(entry: Mapping[str, Any], field: str) -> str:
    value = entry.get(field)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"it must have a text {field!r}, got {value!r}; its fields are {sorted(entry)}")
    return value


def _seconds(entry: Mapping[str, Any], field: str) -> float | None:
    value = entry.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"{field} must be seconds from 0 on, got {value!r}")
    return float(value)


def _plain(text: str) -> str:
    return text.strip().rstrip(".").casefold()
