"""Accuracy of a vision-language model on multiple-choice questions, from all patches of a video's frames or from few.

python -m foveate.bench.cases.vlm --model Qwen3-VL-4B-Instruct --questions questions.jsonl --out vlm.json

Needs trained weights: the accuracy of random ones means nothing, and files do not show whether weights are trained.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Final

from tyro.conf import arg

from foveate.bench.cases.answers import Answers
from foveate.bench.cases.model_inputs import ALL, Frames, Method, methods_of
from foveate.bench.cases.questions import Question, read_questions
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.records.interval import wilson
from foveate.bench.records.table import markdown, say
from foveate.bench.records.writing import hand_out, new_record, sha256
from foveate.pipeline.errors import ModelError, SettingsError, SourceError, out_of_memory_advice
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.vlm.local import local_reader

if TYPE_CHECKING:
    from foveate.pipeline.vlm.reader import Reader

_CAUTION: Final = (
    "the files in {} do not show whether its weights are trained: the accuracy of random weights means nothing"
)
_MODEL = "The folder of a transformers model with trained weights."
_QUESTIONS = "Questions, in the fields of bench/README.md."
_VIDEOS = "The folder of the videos. Default: that of the questions."
_ANSWERS = "A file for the answers, written as they come; a second run asks only what is missing."
_BUDGETS = "Language-model tokens per frame."
_FPS = "Sample this many frames per second."
_FRAMES = "Use at most this many frames, spread over the part asked about."
_MAX_TOKENS = "Maximum tokens of an answer."


def vlm(
    model: Annotated[str, arg(metavar="DIR", help=_MODEL)],
    questions: Annotated[str, arg(metavar="FILE.jsonl", help=_QUESTIONS)],
    videos: Annotated[str | None, arg(metavar="DIR", help=_VIDEOS)] = None,
    answers: Annotated[str, arg(metavar="FILE.jsonl", help=_ANSWERS)] = "vlm_answers.jsonl",
    out: Out = None,
    budgets: Annotated[tuple[int, ...], arg(metavar="N ...", help=_BUDGETS)] = (17, 34, 68),
    fps: Annotated[float, arg(metavar="X", help=_FPS)] = 1.0,
    frames: Annotated[int, arg(metavar="N", help=_FRAMES)] = 16,
    max_tokens: Annotated[int, arg(metavar="N", help=_MAX_TOKENS)] = 8,
) -> None:
    """Compare a model's accuracy on multiple-choice questions, given all patches of the frames or few of them."""
    record = new_record("vlm", out)
    check_folders(answers=answers)
    check_least(1, frames=frames)
    check_count("max-tokens", max_tokens)
    _check(budgets, fps)
    say(_CAUTION.format(model))
    asked = read_questions(Path(questions), Path(questions).parent if videos is None else Path(videos))
    reader = local_reader(Path(model))
    about = {"foveate": record["versions"]["foveate"], **_about(Path(model), Path(questions))}
    about |= {"fps": fps, "frames": frames, "max_tokens": max_tokens}
    methods = methods_of(budgets)
    with Answers(Path(answers), about) as known:
        for number, question in enumerate(asked, 1):
            if _answer(reader, question, methods, known, fps, frames, max_tokens):
                say(f"answered {number} of {len(asked)}: {question.name}")
        cases = [_case(method, asked, known) for method in methods]
    guessing = fmean(1 / len(question.options) for question in asked)
    record |= {**about, "interval": "Wilson, 95%", "guessing": guessing, "cases": cases}
    say(_table(cases, guessing))
    hand_out(record, out)


def _about(model: Path, questions: Path) -> dict[str, Any]:
    """Which model and questions. Weights are identified by their folder's name and configuration alone."""
    return {
        "model": model.resolve().name,
        "config_sha256": sha256(model / "config.json"),
        "questions_sha256": sha256(questions),
    }


def _check(budgets: Sequence[int], fps: float) -> None:
    """Raise SettingsError for impossible numbers."""
    if not budgets or len(set(budgets)) < len(budgets):
        raise SettingsError(f"--budgets must be different numbers, at least one, got {list(budgets)}")
    for budget in budgets:
        check_count("budgets", budget, most=100_000)
    if not 1e-5 <= fps <= 1000:
        raise SettingsError(f"--fps must be from 1e-5 to 1000, got {fps:g}")


def _answer(
    reader: Reader, question: Question, methods: Sequence[Method], known: Answers, fps: float, frames: int, most: int
) -> int:
    """Ask what has not been answered yet. Returns the number of new answers."""
    missing = [method for method in methods if known.get(question.name, method) is None]
    sampled = Frames(question, fps, frames, reader.merge) if missing else None
    for method in missing:
        assert sampled is not None
        inputs = sampled.inputs(method)
        if not inputs:
            raise SourceError(f"{question.video} has no frame in the part that question {question.name!r} is about")
        begin = time.perf_counter()
        said = _greedy_answer(reader, inputs, question.prompt, most)
        seconds = time.perf_counter() - begin
        letter = question.letter_in(said)
        known.add({
            "question": question.name, "method": method.name, "budget": method.budget, "answer": said,
            "letter": letter, "right": letter == question.right, "frames": len(inputs),
            "tokens": sum(map(len, inputs)) // reader.merge**2, "seconds": seconds,
        })  # fmt: skip
    return len(missing)


def _greedy_answer(reader: Reader, inputs: Sequence[Any], prompt: str, most: int) -> str:
    """The answer by greedy decoding. Raises ModelError if the prompt is too long or memory runs out."""
    try:
        with out_of_memory_advice("use fewer --frames"):
            return reader.ask(inputs, prompt, max_new_tokens=most, do_sample=False)
    except ValueError as error:
        raise ModelError(str(error)) from error


def _case(method: Method, questions: Sequence[Question], known: Answers) -> dict[str, Any]:
    """Accuracy over all questions. ``gained`` and ``lost``: answered right by this, or by all patches, alone."""
    pairs = [(known.get(each.name, method), known.get(each.name, Method(ALL, None))) for each in questions]
    answers = [(mine, whole) for mine, whole in pairs if mine is not None and whole is not None]
    assert len(answers) == len(questions)
    right = sum(mine["right"] for mine, _ in answers)
    return {
        "method": method.name, "budget": method.budget, "questions": len(answers), "right": right,
        "accuracy": right / len(answers), "interval": list(wilson(right, len(answers))),
        "unreadable": sum(mine["letter"] is None for mine, _ in answers),
        "gained": sum(mine["right"] and not whole["right"] for mine, whole in answers),
        "lost": sum(whole["right"] and not mine["right"] for mine, whole in answers),
        "tokens_per_frame": sum(mine["tokens"] for mine, _ in answers) / sum(mine["frames"] for mine, _ in answers),
    }  # fmt: skip


def _table(cases: Sequence[Mapping[str, Any]], guessing: float) -> str:
    """One row for each method and budget, as Markdown."""
    heading = ("method", "tokens/frame", "accuracy", "95%", "gained, lost", "unreadable")
    note = f"Wilson's intervals; questions: {cases[0]['questions']}; guessing: {guessing:.1%}"
    return f"{markdown(heading, map(_row, cases))}\n{note}"


def _row(case: Mapping[str, Any]) -> tuple[str, ...]:
    name = case["method"] if case["budget"] is None else f"{case['method']}, {case['budget']}"
    low, high = case["interval"]
    shares = (f"{case['accuracy']:.1%}", f"{low:.1%} to {high:.1%}")
    return (
        name, f"{case['tokens_per_frame']:.1f}", *shares, f"+{case['gained']} -{case['lost']}", str(case["unreadable"]),
    )  # fmt: skip


if __name__ == "__main__":
    run_module(vlm)
