"""What the Cascade's wrappers work out on the host: needs no GPU."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foveate.cuda.cascade.layout as layout
from foveate.cuda.cascade.allocate import units_inside
from foveate.cuda.cascade.layout import grid_of, units_of
from foveate.pipeline.geometry import Geometry

_HEADERS = Path(layout.__file__).parent
_FIELD = re.compile(r"^\s*(?:const )?(\w+)(\*?) (\*?[\w, *]+);", re.MULTILINE)


@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (33, 40), (290, 160), (1920, 1080), (3840, 2160)])
def test_units_inside_the_picture(width: int, height: int, merge: int) -> None:
    """Every unit with a cell inside is counted once, under some node of level 1."""
    geometry = Geometry(width, height)
    grid = grid_of(geometry, merge)
    inside = geometry.inside[::merge, ::merge]  # a group lies inside where its first cell does
    units = units_inside(grid)
    assert units.sum() == inside.sum()
    assert len(units) == units_of(grid) // 4
    # The first node covers the units (0, 0) to (1, 1); the second one lies to its right.
    assert units[0] == inside[:2, :2].sum()
    assert units[1] == inside[:2, 2:4].sum()
    assert units[2] == inside[2:4, :2].sum()


@pytest.mark.parametrize(
    ("name", "header", "dtype"),
    [
        ("Choice", "cascade.cuh", layout.CHOICE),
        ("Token", "cascade.cuh", layout.TOKEN),
        ("Columns", "cascade.cuh", layout.COLUMNS),
        ("Header", "cascade.cuh", layout.HEADER),
        ("Grid", "cascade.cuh", layout.GRID),
        ("Conclusion", "block.cuh", layout.CONCLUSION),
        ("Rate", "allocate.cu", layout.RATE),
    ],
)
def test_structs_mirror_the_headers(name: str, header: str, dtype: np.dtype[Any]) -> None:
    """The same fields in the same order, of the same kind."""
    text = (_HEADERS / header).read_text()
    body = re.search(rf"struct {name} {{\n(.*?)\n}};", text, re.DOTALL)
    assert body is not None
    code = re.sub(r"//.*", "", body[1])
    fields = [
        (field.strip(), "pointer" if pointer else kind)
        for kind, pointer, names in _FIELD.findall(code)
        for field in names.split(",")
    ]
    kinds = {"int": np.int32, "float": np.float32, "double": np.float64, "pointer": np.uint64}
    assert [(field, np.dtype(kinds[kind])) for field, kind in fields] == [
        (field, dtype[field]) for field in dtype.names or ()
    ]
