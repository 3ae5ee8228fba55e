"""Files of settings, boxes and weights with random damage: they are read, or one line says what is wrong."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest

from foveate.pipeline.cascade.linear_scorer import read_scorer
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.layouts import load_layout
from foveate.pipeline.presets import load_preset
from foveate.pipeline.regions import read_regions

PRESET = b"""budget = 50
query = ["red car", "-sky:0.5"]
maps = ["edges", "query:red"]
[allocation]
memory = "stream"
merge = 2
min_gain = 64.0
[source]
start = "1:02.5"
fps = 2.0
"""
BOXES = b"""{"frame": 0, "regions": [{"name": "a", "box": [1, 2, 30, 40], "tokens": 5}]}
{"frame": 12, "regions": [{"name": "b", "box": [0.5, 2, 3e2, 40], "score": 0.9}, {"name": 3, "box": [1, 2, 3, 4]}]}
"""
WEIGHTS = b"bias = 0.1\n[weights]\nedges = 0.5\nmotion = -0.2\n"
LAYOUT = b'channels = ["red", "green", "edges"]\n'
FILES: dict[str, tuple[Callable[[Path], object], bytes]] = {
    "preset.toml": (lambda path: load_preset(str(path)), PRESET),
    "boxes.jsonl": (read_regions, BOXES),
    "weights.toml": (read_scorer, WEIGHTS),
    "layout.toml": (lambda path: load_layout(str(path)), LAYOUT),
}
PIECES = (b"null", b"true", b"1e999", b"-1", b"NaN", b"inf", b"[]", b"{}", b'""', b"[[[[", b"9" * 5000, b"x" * 5000)
PIECES += (b"\xff", b"\0", b"\n", b"\r", b"'", b'"', b"=", b"[a]", b"1979-05-27", b"1_000", b"\xe2\x80\xa8", b"\\ud800")


def damaged(content: bytes, draw: Random) -> bytes:
    """A copy with some bytes changed, pieces put in or over, and pieces missing."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(data))
        match draw.choice(("byte", "piece", "missing", "twice")):
            case "byte":
                data[at] = draw.randrange(256)
            case "piece":
                data[at : at + draw.choice((0, 1, 3, 8))] = draw.choice(PIECES)
            case "missing":
                del data[at : at + draw.choice((1, 5, 30))]
                data += b"\n"
            case "twice":
                data[at:at] = data[at : at + 20]
    return bytes(data)


def try_to_read(read: Callable[[Path], object], path: Path) -> None:
    """Read it, or be told in one line of bounded length."""
    try:
        read(path)
    except SettingsError as error:
        said = str(error)
        assert said.isprintable(), said
        assert len(said) < 700, said


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("name", FILES)
def test_whatever_a_file_holds_it_is_read_or_told_in_one_line(name: str, seed: int, tmp_path: Path) -> None:
    read, content = FILES[name]
    draw, path = Random(seed), tmp_path / name
    for _ in range(5):
        path.write_bytes(damaged(content, draw))
        try_to_read(read, path)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("packed", [False, True])
def test_so_is_a_damaged_archive(packed: bool, seed: int, tmp_path: Path) -> None:
    draw, path = Random(seed), tmp_path / "weights.npz"
    arrays = {"channels": np.array(["edges", "motion"]), "weights": np.array([0.5, 0.2]), "bias": np.array(0.1)}
    (np.savez_compressed if packed else np.savez)(path, **arrays)
    content = path.read_bytes()
    for _ in range(25):
        path.write_bytes(damaged(content, draw))
        try_to_read(read_scorer, path)
