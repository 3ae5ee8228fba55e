"""How much of the video a reader of the tokens knows, for Foveate and its peers. No model is needed:

python -m foveate.bench.cases.quality --out quality.json --table quality.md

What is known after a frame is, of each cell, the newest token sent for it. The picture so painted is compared with the
true frame, at the same number of tokens per frame for every method.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from foveate.bench.case import Clip, file_clips
from foveate.bench.cases.drift import drift_clip
from foveate.bench.clips import sample_folder
from foveate.bench.entry import check_folders, check_least, guarded
from foveate.bench.footage import Footage, Picture, read_footage
from foveate.bench.painting import decibels, mean_square
from foveate.bench.peers.methods import METHODS, STRATEGIES, Method, Shown
from foveate.bench.record import clip_record, hand_out, origin, write_text
from foveate.bench.table import standard_error

_LUMA_WEIGHTS: Final = (6, 1, 1)  # of the squared errors of Y, Cb and Cr in psnr_yuv
_FOOTNOTE: Final = (
    "PSNR of luma in dB, in brackets of Y, Cb and Cr with squared errors weighted 6 : 1 : 1; mean over the frames, at "
    "most 60 a frame. EVS and DTD show their first frame whole, RLT its first two: beyond the budget."
)
_CLIPS: Final = ("pedestrians", "bunny")


def quality(
    files: Annotated[
        Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: two samples and a drift.")
    ] = (),
    out: Annotated[str | None, arg(metavar="FILE.json", help="The record. Default: standard output.")] = None,
    table: Annotated[str | None, arg(metavar="FILE.md", help="The table, as Markdown.")] = None,
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
    strategies: FlagCreatePairsOff[Annotated[bool, arg(help="Compare Foveate's own strategies instead.")]] = False,
) -> None:
    """Compare the reader's picture of Foveate with that of other ways to choose tokens."""
    check_least(1, budget=budget, frames=frames)
    check_folders(out=out, table=table)
    say = standard_error().print
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clips = file_clips(files) if files else [*_samples(), drift_clip(Path(folder), frames)]
        record: dict[str, Any] = {**origin(), "command": "quality", "budget": budget, "cases": []}
        for clip in clips:
            say(f"measuring {clip.name}")
            record["cases"] += clip_quality(clip, STRATEGIES if strategies else METHODS, budget, frames)
    markdown = markdown_table(record)
    say(markdown)
    if table is not None:
        write_text(Path(table), markdown)
    hand_out(record, out)


def clip_quality(clip: Clip, methods: Mapping[str, Method], budget: int, frames: int) -> list[dict[str, Any]]:
    """One case per method: PSNR of luma and of all planes, mean over the frames and each, and tokens per frame."""
    footage = read_footage(clip.path, frames)
    about = clip_record(clip, len(footage.pictures))
    return [
        {"name": f"{clip.name}, {name}", "clip": clip.name, "method": name}
        | method_quality(method, footage, budget)
        | about
        for name, method in methods.items()
    ]


def method_quality(method: Method, footage: Footage, budget: int) -> dict[str, Any]:
    """PSNR in dB; ``psnr_yuv`` weighs the squared errors of Y, Cb and Cr by 6 : 1 : 1.

    ``tokens_per_frame`` is the mean over all frames, ``later_tokens`` over all but the first.
    """
    luma: list[float] = []
    yuv: list[float] = []
    tokens: list[int] = []
    for picture, shown in zip(footage.pictures, method(footage, budget), strict=True):
        errors = _errors(picture, shown)
        luma.append(decibels(errors[0]))
        yuv.append(decibels(fmean(errors, _LUMA_WEIGHTS)))
        tokens.append(shown.tokens)
    return {
        "psnr_luma": fmean(luma),
        "psnr_yuv": fmean(yuv),
        "psnr_luma_least": min(luma),
        "psnr_luma_last": luma[-1],
        "tokens_per_frame": fmean(tokens),
        "later_tokens": fmean(tokens[1:] or tokens),
        "samples": {"psnr_luma": luma, "psnr_yuv": yuv, "tokens": tokens},
    }


def _errors(picture: Picture, shown: Shown) -> list[float]:
    return [mean_square(plane, true) for plane, true in zip(shown.planes, picture.planes, strict=True)]


def markdown_table(record: Mapping[str, Any]) -> str:
    """One row per method, one column per clip: luma PSNR, and in brackets that of all planes, in dB."""
    cases: Iterable[Mapping[str, Any]] = record["cases"]
    cells = {(case["method"], case["clip"]): case for case in cases}
    methods, clips = (list(dict.fromkeys(pair[place] for pair in cells)) for place in (0, 1))
    lines = [f"| method | {' | '.join(clips)} |", "|---" * (len(clips) + 1) + "|"]
    for method in methods:
        lines.append(f"| {method} | {' | '.join(_cell(cells[method, clip]) for clip in clips)} |")
    return "\n".join([*lines, "", _FOOTNOTE]) + "\n"


def _cell(case: Mapping[str, Any]) -> str:
    return f"{case['psnr_luma']:.1f} ({case['psnr_yuv']:.1f})"


def _samples() -> list[Clip]:
    return [Clip(name, sample_folder() / f"{name}.mp4") for name in _CLIPS]


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns the exit code."""
    return guarded(lambda: tyro.cli(quality, prog="python -m foveate.bench.cases.quality", args=list(arguments)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
