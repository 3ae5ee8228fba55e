"""How many words an OCR model reads in the reader's picture. Needs foveate[ocr]:

python -m foveate.bench.cases.words --out words.json

The clips are drawn, so the words are known. An interrupted run resumes from its file.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from tyro.conf import arg

from foveate.bench.case import Clip
from foveate.bench.clips.encoding import LOSSLESS, colour_frame, encode
from foveate.bench.clips.footage import Footage, Plane, read_footage
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.peers.methods import with_queries
from foveate.bench.peers.sent import Method, at_once
from foveate.bench.reader.painting import rgb_of
from foveate.bench.records.jobs import Job, run_benchmark
from foveate.bench.records.table import methods_table
from foveate.bench.records.writing import method_cases
from foveate.bench.scenes.text import SEED, TEXT_SCENES
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.extras import install_command

_RATE: Final = Fraction(25)
_NAMES: Final = ", ".join(TEXT_SCENES)

Read = Callable[[Plane], str]
"""Reads the text in R'G'B', uint8[H, W, 3]."""


def words(
    out: Out = None,
    scenes: Annotated[tuple[str, ...], arg(metavar="NAME ...", help=f"Of {_NAMES}. Default: all.")] = (),
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
    every: Annotated[int, arg(metavar="N", help="Read the last of every N frames.")] = 30,
) -> None:
    """Count the words that an OCR model reads in the reader's picture."""
    measure_words("words", scenes or tuple(TEXT_SCENES), with_queries("text"), budget, frames, every, out)


def measure_words(
    command: str,
    scenes: Sequence[str],
    methods: Mapping[str, Method],
    budget: int,
    frames: int,
    every: int,
    out: str | None,
    seed: int = SEED,
) -> None:
    """The record of ``command``, scene by scene into ``out``; and its table. Raises SettingsError."""
    check_least(1, budget=budget, frames=frames, every=every)
    check_folders(out=out)
    unknown = [name for name in scenes if name not in TEXT_SCENES]
    if unknown:
        raise SettingsError(f"--scenes must be among {_NAMES}, got {unknown[0]!r}")
    read = reader()
    plan = {"scenes": list(scenes), "budget": budget, "frames": frames, "every": every}
    plan |= {} if seed == SEED else {"seed": seed}
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        measure = partial(
            scene_words, methods=methods, folder=Path(folder), budget=budget, frames=frames, every=every, read=read
        )
        jobs = [Job(name, partial(measure, name, seed=seed)) for name in scenes]
        run_benchmark(command, plan, jobs, out, words_table)


def scene_words(
    name: str,
    methods: Mapping[str, Method],
    folder: Path,
    budget: int,
    frames: int,
    every: int,
    read: Read,
    seed: int = SEED,
) -> list[dict[str, Any]]:
    """One case per method: the share of the words that is read, over every ``every``-th frame of the scene ``name``."""
    scene = TEXT_SCENES[name]
    clip = Clip(name, folder / f"{name}.mp4", scene.how)
    drawn = list(scene.frames(frames, seed))
    encode(clip.path, (colour_frame(picture) for picture, _ in drawn), _RATE, LOSSLESS)
    footage = read_footage(clip.path, frames)
    asked = {place: drawn[place][1] for place in range(every - 1, frames, every)}
    counts = {method: read_words(run, footage, budget, asked, read) for method, run in methods.items()}
    return method_cases(clip, len(footage.pictures), counts)


def read_words(
    method: Method, footage: Footage, budget: int, asked: Mapping[int, Sequence[str]], read: Read
) -> dict[str, Any]:
    """How many ``words`` were ``read`` in the frames of ``asked``, in all and by frame."""
    counts = []
    for place, shown in enumerate(at_once(method(footage, budget), footage)):
        if place in asked:
            counts.append(found(asked[place], read(rgb_of(shown.planes))))
    total = sum(len(words) for words in asked.values())
    return {"words": total, "read": sum(counts), "share": sum(counts) / max(total, 1), "samples": {"read": counts}}


def found(true: Sequence[str], text: str) -> int:
    """How many of the ``true`` words are in ``text``, each counted as often as it should occur, ignoring case."""
    return (Counter(true) & Counter(re.findall(r"[a-z]+", text.lower()))).total()


def reader(smallest: int | None = None, finds: bool = True) -> Read:
    """The OCR model that the package rapidocr holds. Raises EngineError where it is missing.

    ``smallest``: pixels to which it enlarges the shorter side of a picture at least, to find lines; None: its own
    choice. Without ``finds``, the picture is one line.
    """
    try:
        from rapidocr import RapidOCR
    except ImportError as error:
        raise EngineError(f"words are read by rapidocr: {install_command('ocr')} ({error})") from None
    limit = {} if smallest is None else {"Det.limit_side_len": smallest}
    engine = RapidOCR(params={"Global.log_level": "critical", **limit})

    def read(rgb: Plane) -> str:
        return " ".join(getattr(engine(rgb[..., ::-1].copy(), use_det=finds, use_cls=False), "txts", None) or ())

    return read


def words_table(record: Mapping[str, Any]) -> str:
    """One row per method, one column per clip: per cent of the words."""
    return methods_table("words read, %", record["cases"], "clip", lambda case: f"{100 * case['share']:.0f}") + "\n"


if __name__ == "__main__":
    run_module(words)
