"""For models that take pictures only: a thumbnail with sharp parts against one picture, where a query asks for a thing.

python -m foveate.bench.cases.pictures --out pictures.json

Both get the same budget of language-model tokens. Measured is the PSNR of what they paint, where something is asked
for, over three masks: the cells that the query's map marks; where the tokens lie that the parts are made from; and the
pixels that move, found without Foveate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Annotated, Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.clips.samples import SAMPLES, clips_of
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.reader.painting import decibels
from foveate.bench.records.table import say
from foveate.bench.records.writing import clip_record, hand_out, new_record
from foveate.pipeline.selection import PATCH, Selection
from foveate.pipeline.stream import open_stream
from foveate.pipeline.vlm.pictures import PIXELS, Picture, pictures_of

Pixels = NDArray[Any]  # uint8[height, width, 3], R'G'B'
Mask = NDArray[np.bool_]

_MARKED: Final = 0.5  # of the query's map
_STANDS_OUT: Final = 15  # levels of luma that a moving pixel differs by from the median picture
_OPENING: Final = np.ones((5, 5), np.uint8)  # smaller spots are noise
_LEAST: Final = 256  # pixels: a frame with fewer does not count
MASKS: Final = ("query", "tokens", "moving")


class _Looked(NamedTuple):
    selection: Selection
    rgb: Pixels


def pictures(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: the three samples.")] = (),
    out: Out = None,
    query: Annotated[str, arg(metavar="TEXT", help="What is asked for.")] = "moving",
    budget: Annotated[int, arg(metavar="N", help="Language-model tokens per frame.")] = 68,
    every: Annotated[int, arg(metavar="N", help="Use every Nth frame.")] = 5,
) -> None:
    """Compare a thumbnail with sharp parts against one picture, where a query asks for something."""
    check_least(1, budget=budget, every=every)
    record = new_record("pictures", out, query=query, budget=budget)
    for clip in clips_of(files, *SAMPLES):
        case = clip_pictures(clip, query, budget, every)
        record["cases"].append(case)
        for name in MASKS:
            if (found := case["masks"][name])["frames"]:
                say(
                    f"{clip.name}, {name}: {found['share']:.1%} of {found['frames']} frames; one picture "
                    f"{found['one_mean']:.1f} dB, with parts {found['parts_mean']:.1f} dB (median "
                    f"{found['one_median']:.1f}, {found['parts_median']:.1f}; of the mean error "
                    f"{found['one_pooled']:.1f}, {found['parts_pooled']:.1f}); worse in {found['worse']}"
                )
    hand_out(record, out)


def clip_pictures(clip: Clip, query: str, budget: int, every: int) -> dict[str, Any]:
    """For each mask: means and medians of the frames' PSNR, that of their mean error, and frames where parts lose."""
    looked = list(_frames(clip, query, budget, every))
    errors: dict[str, list[tuple[float, float, int]]] = {name: [] for name in MASKS}
    with_parts = 0
    for (selection, rgb), moving in zip(looked, _moving([each.rgb for each in looked]), strict=True):
        (one,) = pictures_of(replace(selection, participation=None), budget, rgb)
        several = pictures_of(selection, budget, rgb)
        if max(one.tokens, sum(picture.tokens for picture in several)) > budget:
            raise RedCheckError(f"{clip.name}, frame {selection.index}: more than {budget} tokens")
        with_parts += len(several) > 1
        wrong = [_squares(rgb, painted(shown, rgb.shape)) for shown in ([one], several)]
        for name, mask in (*_asked(selection, rgb.shape), ("moving", moving)):
            if np.count_nonzero(mask) >= _LEAST:
                one_error, parts_error = (float(each[mask].mean()) for each in wrong)
                errors[name].append((one_error, parts_error, int(np.count_nonzero(mask))))
    area = looked[0].rgb.shape[0] * looked[0].rgb.shape[1]
    masks = {name: _summary(found, area) for name, found in errors.items()}
    return {"name": clip.name, "with_parts": with_parts, "masks": masks} | clip_record(clip, len(looked))


def painted(shown: Sequence[Picture], shape: Sequence[int]) -> Pixels:
    """The reader's picture: the first one enlarged bilinearly, the others painted over it."""
    height, width = shape[:2]
    seen = cv2.resize(shown[0].rgb, (width, height), interpolation=cv2.INTER_LINEAR)
    for picture in shown[1:]:
        assert picture.box is not None
        left, top, right, bottom = (
            round(end * n / 1000) for end, n in zip(picture.box, (width, height) * 2, strict=True)
        )
        seen[top:bottom, left:right] = cv2.resize(picture.rgb, (right - left, bottom - top))
    return seen


def _frames(clip: Clip, query: str, budget: int, every: int) -> Iterator[_Looked]:
    tokens = max(1, budget * PIXELS // PATCH**2)
    with open_stream(str(clip.path), query=[query], maps=("query",), budget=tokens, source={"every": every}) as stream:
        for selection in stream:
            assert stream.frame is not None
            yield _Looked(selection, stream.frame.rgb())


def _moving(frames: Sequence[Pixels]) -> Iterator[Mask]:
    """Pixels that differ from the median picture, which shows the background if the camera is still."""
    luma = np.stack([cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY) for rgb in frames])
    still = np.median(luma, axis=0).astype(np.uint8)
    for each in luma:
        differs = (cv2.absdiff(each, still) > _STANDS_OUT).astype(np.uint8)
        yield cv2.morphologyEx(differs, cv2.MORPH_OPEN, _OPENING) > 0


def _asked(selection: Selection, shape: Sequence[int]) -> Iterator[tuple[str, Mask]]:
    """The cells that the query marks, and those of the tokens up to LOD 1 that it marks half as much as any."""
    height, width = shape[:2]
    whole = np.ones((PATCH, PATCH), np.bool_)
    yield "query", np.kron(selection.maps["query"] > _MARKED, whole)[:height, :width]
    mask = np.zeros((height, width), np.bool_)
    assert selection.participation is not None
    fine = selection.lod <= 1
    least = selection.participation[fine].max(initial=0) / 2
    for at in np.flatnonzero(fine & (selection.participation >= max(least, 0.05))):
        half = PATCH << int(selection.lod[at]) >> 1
        x, y = int(selection.x[at]), int(selection.y[at])
        mask[max(0, y - half) : y + half, max(0, x - half) : x + half] = True
    yield "tokens", mask


def _squares(rgb: Pixels, seen: Pixels) -> NDArray[np.float32]:
    """Squared error of each pixel, mean of its colours."""
    return ((rgb.astype(np.float32) - seen) ** 2).mean(axis=2)


def _summary(found: Sequence[tuple[float, float, int]], area: int) -> Mapping[str, Any]:
    if not found:
        return {"frames": 0}
    summary: dict[str, Any] = {"frames": len(found), "share": fmean(pixels for *_, pixels in found) / area}
    every = sum(pixels for *_, pixels in found)
    for at, name in enumerate(("one", "parts")):
        each = [decibels(errors[at]) for errors in found]
        pooled = sum(errors[at] * errors[2] for errors in found) / every
        summary |= {f"{name}_mean": fmean(each), f"{name}_median": median(each), f"{name}_pooled": decibels(pooled)}
        summary[f"{name}_samples"] = each
    summary["worse"] = sum(parts > one for one, parts, _ in found)
    return summary


if __name__ == "__main__":
    run_module(pictures)
