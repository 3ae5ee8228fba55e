"""Regions of the picture that get tokens of their own, frame by frame: from a file of boxes, or from Python."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.geometry import CELL, Geometry, Map
from foveate.pipeline.settings import MOST_FRAMES, rule, shown_value

_MOST_TOKENS: Final = 1_000_000

Boxes = Mapping[str, Sequence[float]] | Sequence[Sequence[float]]
"""Boxes [x, y, w, h] by the names of their regions, or in a sequence, which names them "0", "1" and so on."""

_Place = Annotated[float, Field(allow_inf_nan=False)]
_Side = Annotated[float, Field(allow_inf_nan=False, ge=0)]


class Region(BaseModel):
    """A named box. Further fields, such as a detector's confidence, are passed over.

    >>> Region(name="person 3", box=(363, 190, 37, 91)).tokens is None
    True
    """

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)

    name: str
    box: tuple[_Place, _Place, _Side, _Side]  # left, top, width, height, in pixels of the frame, as in COCO
    tokens: int | None = Field(None, ge=1, le=_MOST_TOKENS)  # most tokens; None: the setting region_tokens


class _Line(BaseModel):
    """The regions from ``frame`` on, until the next line."""

    model_config = ConfigDict(strict=True)

    frame: int = Field(ge=0, le=MOST_FRAMES)
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class RegionTimeline:
    """Which regions there are in each frame: those of ``regions[i]`` from frame ``frames[i]`` on."""

    frames: Sequence[int]  # ascending
    regions: Sequence[tuple[Region, ...]]

    def at(self, frame: int) -> tuple[Region, ...]:
        """The regions of a frame of this number in the source; none before the first line."""
        place = bisect_right(self.frames, frame)
        return self.regions[place - 1] if place else ()


class Budgeted(NamedTuple):
    """A region that gets tokens."""

    number: int  # its place among the regions of the frame
    share: Map  # float32[grid]: how much of each cell lies in it, from 0 to 1
    budget: int  # most tokens, a multiple of merge**2


def read_regions(path: Path) -> RegionTimeline:
    """The regions in a file of JSON lines, such as

    {"frame": 12, "regions": [{"name": "person 3", "box": [363, 190, 37, 91]}]}

    Raises SettingsError, with the number of the line where one is wrong.
    """
    frames: list[int] = []
    regions: list[tuple[Region, ...]] = []
    for number, text in _lines(path):
        try:
            line = _Line.model_validate_json(text)
        except ValidationError as error:
            raise SettingsError(f"regions: {path}, line {number}: {_problem(error)}") from None
        if frames and line.frame <= frames[-1]:
            raise SettingsError(
                f"regions: {path}, line {number}: frame must be above {frames[-1]}, that of the line before, got "
                f"{line.frame}"
            )
        frames.append(line.frame)
        regions.append(line.regions)
    return RegionTimeline(frames, regions)


def regions_of(boxes: Boxes) -> RegionTimeline:
    """The regions of all frames. Raises SettingsError for what is no box."""
    named = boxes.items() if isinstance(boxes, Mapping) else ((str(number), box) for number, box in enumerate(boxes))
    found = []
    for name, box in named:
        try:
            found.append(Region(name=name, box=tuple(np.asarray(box, np.float64).tolist())))
        except ValidationError as error:
            raise SettingsError(f"the region {name!r}: {_problem(error)}") from None
        except (TypeError, ValueError):
            raise SettingsError(f"the region {name!r}: box must be four numbers, got {shown_value(box)}") from None
    return RegionTimeline((0,), (tuple(found),))


def budgeted(regions: Iterable[Region], geometry: Geometry, each: int, budget: int, merge: int) -> list[Budgeted]:
    """The regions that hold any of the picture, with their budgets: what they ask for, or ``each``.

    Together these are at most ``budget``: where the regions ask for more, each gets its part of it, and where there are
    not enough tokens for one a region, the first regions get one. With ``merge`` tokens are given out by whole groups.
    """
    shares = [(number, region, share_of_cells(region, geometry)) for number, region in enumerate(regions)]
    held = [(number, region.tokens or each, share) for number, region, share in shares if share.any()]
    size = merge**2
    units = parts([max(tokens // size, 1) for _, tokens, _ in held], budget // size)
    return [Budgeted(number, share, part * size) for (number, _, share), part in zip(held, units, strict=False) if part]


def parts(asked: Sequence[int], budget: int) -> list[int]:
    """``asked``, numbers from 1 on, or where they add up to more than ``budget`` their parts of it, at least 1 each.

    There are fewer parts than ``asked`` where the budget is smaller than their number. Above that 1, the parts are in
    proportion to what was asked, and add up to the whole budget.

    >>> parts([64, 64], 273), parts([64, 64, 128], 128), parts([9, 9, 9], 2)
    ([64, 64], [32, 32, 64], [1, 1])
    """
    if sum(asked) <= budget:
        return list(asked)
    asked = asked[:budget]
    further = np.cumsum([0, *asked], dtype=np.int64) - np.arange(len(asked) + 1)
    ends = further * (budget - len(asked)) // max(int(further[-1]), 1)
    return [1 + int(part) for part in np.diff(ends)]


def share_of_cells(region: Region, geometry: Geometry) -> Map:
    """float32[grid]: how much of each cell's area lies both in the region and in the picture, from 0 to 1."""
    left, top, width, height = region.box
    rows, columns = geometry.grid
    down = _overlap(top, top + height, geometry.height, rows)
    across = _overlap(left, left + width, geometry.width, columns)
    return np.outer(down, across).astype(np.float32)


def _overlap(start: float, stop: float, pixels: int, cells: int) -> Map:
    """Shares of ``cells`` cells, from 0 on, in [start, stop) and in the first ``pixels`` pixels."""
    begin = np.arange(cells) * float(CELL)
    end = np.minimum(begin + CELL, pixels)
    return np.asarray(np.clip(np.minimum(end, stop) - np.maximum(begin, start), 0, None) / CELL, np.float32)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, with their numbers from 1. Raises SettingsError."""
    try:
        with path.open("rb") as file:
            yield from ((number, line.strip()) for number, line in enumerate(file, 1) if line.strip())
    except OSError as error:
        raise SettingsError(f"regions: {path} cannot be read: {error.strerror}") from error


def _problem(error: ValidationError) -> str:
    """The first problem of a line: field, rule, value."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    match first["type"]:
        case "json_invalid":
            return f"no valid JSON: {first['ctx']['error']}".replace(" at line 1 column", " at column")
        case "too_long":
            return f"{field} must have at most {first['ctx']['max_length']} items, got {shown_value(first['input'])}"
        case "missing":
            return f"{field} is missing"
        case "model_type" | "model_attributes_type":
            return f"{field or 'it'} must be an object, got {shown_value(first['input'])}"
    return f"{field} {rule(first)}, got {shown_value(first['input'])}"
