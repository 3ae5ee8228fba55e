"""How close a reader's picture comes to the video, for Foveate and its peers. No model is needed:

python -m foveate.bench.cases.quality --out quality.json --table quality.md

The reader's picture shows the newest token of each cell. After each frame it is compared with the true frame, at the
same number of tokens per frame for every method.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

from tyro.conf import FlagCreatePairsOff, Positional, arg

from foveate.bench.case import Clip, file_clips
from foveate.bench.cases.picture_errors import Errors, errors_of, figures
from foveate.bench.clips.footage import Footage, read_footage
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_folders, check_least, run_module
from foveate.bench.peers.methods import METHODS, OPTIONS, STRATEGIES
from foveate.bench.peers.sent import Method, at_constant_rate, at_once
from foveate.bench.reader.painting import decibels, mean_square
from foveate.bench.records.table import markdown, say
from foveate.bench.records.writing import hand_out, method_cases, new_record, write_text
from foveate.bench.scenes.drift import drift_clip
from foveate.pipeline.errors import SettingsError

_COLUMNS: Final = ("tokens", "mean", "pooled", "worst", "R'G'B'", "SSIM", "constant rate")
_FOOTNOTE: Final = (
    "Tokens per frame, all frames counted; PSNR of luma in dB, mean over the frames at most 60 a frame, of the pooled "
    "squared error, and of the worst frame; mean PSNR of R'G'B'; SSIM of luma; and mean PSNR of luma for a model that "
    "reads the budget's tokens per frame, first in, first out. A peer that shows whole frames goes beyond the budget "
    "only where these alone do."
)
_OPTIONS: Final = "Compare Foveate's own options instead: bicubic readers, and a budget that is an average."
_CLIPS: Final = ("pedestrians", "bunny")


def quality(
    files: Annotated[
        Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: two samples and a drift.")
    ] = (),
    out: Out = None,
    table: Annotated[str | None, arg(metavar="FILE.md", help="The table, as Markdown.")] = None,
    budget: Annotated[int, arg(metavar="N", help="Tokens per frame.")] = 273,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
    strategies: FlagCreatePairsOff[Annotated[bool, arg(help="Compare Foveate's own strategies instead.")]] = False,
    options: FlagCreatePairsOff[Annotated[bool, arg(help=_OPTIONS)]] = False,
) -> None:
    """Compare the picture that Foveate's tokens make with that of other ways to choose tokens."""
    check_least(1, budget=budget, frames=frames)
    record = new_record("quality", out, budget=budget)
    check_folders(table=table)
    if strategies and options:
        raise SettingsError("--strategies and --options cannot be combined; give one of them")
    methods = STRATEGIES if strategies else OPTIONS if options else METHODS
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        clips = file_clips(files) if files else [*sample_clips(*_CLIPS), drift_clip(Path(folder), frames)]
        for clip in clips:
            say(f"measuring {clip.name}")
            record["cases"] += clip_quality(clip, methods, budget, frames)
    markdown = markdown_table(record)
    say(markdown)
    if table is not None:
        write_text(Path(table), markdown)
    hand_out(record, out)


def clip_quality(clip: Clip, methods: Mapping[str, Method], budget: int, frames: int) -> list[dict[str, Any]]:
    """One case per method: the error of the reader's picture, over all frames and by frame, and tokens per frame."""
    footage = read_footage(clip.path, frames)
    found = {name: method_quality(method, footage, budget) for name, method in methods.items()}
    return method_cases(clip, len(footage.pictures), found)


def method_quality(method: Method, footage: Footage, budget: int) -> dict[str, Any]:
    """The pictures of two readers: one that reads all tokens of a frame at once, and under ``constant_rate`` one that
    reads K tokens per frame, first in, first out.

    ``tokens_per_frame`` is the mean over all frames, ``later_tokens`` over all but the first.
    """
    errors: list[Errors] = []
    tokens: list[int] = []
    for picture, shown in zip(footage.pictures, at_once(method(footage, budget), footage), strict=True):
        errors.append(errors_of(picture, shown.planes))
        tokens.append(shown.tokens)
    measured = figures(errors)
    measured["samples"]["tokens"] = tokens
    return measured | {
        "tokens_per_frame": fmean(tokens),
        "later_tokens": fmean(tokens[1:] or tokens),
        "tokens": sum(tokens),
        "constant_rate": _constant_rate(method, footage, budget, errors, tokens),
    }


def _constant_rate(
    method: Method, footage: Footage, budget: int, errors: Sequence[Errors], tokens: Sequence[int]
) -> dict[str, Any]:
    """Figures of the second reader. If no frame exceeds the budget, they are those of the first."""
    if max(tokens) > budget:
        shown = at_constant_rate(method(footage, budget), footage, budget)
        late = [
            mean_square(each.planes[0], picture.luma) for picture, each in zip(footage.pictures, shown, strict=True)
        ]
    else:
        late = [each.luma for each in errors]
    luma = [decibels(error) for error in late]
    return {"psnr_luma": fmean(luma), "psnr_luma_pooled": decibels(fmean(late)), "psnr_luma_least": min(luma)}


def markdown_table(record: Mapping[str, Any]) -> str:
    """For each clip, one row per method."""
    cases: Sequence[Mapping[str, Any]] = record["cases"]
    tables = [
        markdown((clip, *_COLUMNS), (_row(case) for case in cases if case["clip"] == clip))
        for clip in dict.fromkeys(case["clip"] for case in cases)
    ]
    return "\n\n".join([*tables, _FOOTNOTE]) + "\n"


def _row(case: Mapping[str, Any]) -> list[str]:
    return [
        case["method"],
        f"{case['tokens_per_frame']:.0f}",
        *(f"{case[f'psnr_luma{kind}']:.1f}" for kind in ("", "_pooled", "_least")),
        f"{case['psnr_rgb']:.1f}",
        f"{case['ssim']:.3f}",
        f"{case['constant_rate']['psnr_luma']:.1f}",
    ]


if __name__ == "__main__":
    run_module(quality)
