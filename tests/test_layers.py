"""Imports point one way: between the rooms, and between the layers inside pipeline, cuda and bench."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("app", "bench", "cuda", "pipeline")

PIPELINE = (
    ("constants that engines share", "spec"),
    ("foundations", "errors exits extras flag_help machine npz plugins small_files timecode"),
    ("frames and geometry", "channels colour flow frames geometry info phrase quadtree selection"),
    ("settings", "keywords layouts presets settings settings_errors settings_texts"),
    ("threads", "bounded_queue chain runner timing"),
    ("C kernels", "native"),
    ("sources", "sources"),
    ("queries", "query"),
    ("regions", "regions"),
    ("choosing tokens", "cascade"),
    ("parts for training", "learned"),
    ("attributes", "attributes"),
    ("encoders", "encoders"),
    ("text", "text"),
    ("relevance", "relevance"),
    ("what a stream needs", "plan"),
    ("CPU engine", "cpu"),
    ("choosing an engine", "engine"),
    ("live sources", "live"),
    ("sinks", "sinks"),
    ("models", "vlm"),
    ("streams", "async_iteration picture_regions push_stream stream_controls stream"),
    ("many videos", "corpus"),
    ("the library", "__init__"),
)
"""Layers of pipeline, lowest first: each imports itself and those above it in this table."""

CUDA = (
    ("driver", "driver"),
    ("textures", "textures"),
    ("a frame on the device", "frame_input frames patches state"),
    ("decoding", "decode"),
    ("pixels", "pixels"),
    ("queries", "query"),
    ("choosing tokens", "cascade"),
    ("engine", "device_selector engine format_session host_selector kernel_support state_readback"),
)
"""Layers of cuda, lowest first."""

BENCH = (
    ("what is measured", "case"),
    ("command lines", "entry"),
    ("records", "records"),
    ("clips", "clips"),
    ("generated scenes", "scenes"),
    ("the reader's picture", "reader"),
    ("other ways to choose tokens", "peers"),
    ("speed", "speed"),
    ("measurements on the GPU", "gpu"),
    ("measurements", "cases"),
    ("suites", "suites"),
    ("pages", "figures report"),
    ("foveate bench", "__init__ command"),
)
"""Layers of bench, lowest first."""

TABLES = {"pipeline": PIPELINE, "cuda": CUDA, "bench": BENCH}

ALLOWED = {"app": {"pipeline"}, "bench": {"cuda", "pipeline"}, "cuda": {"pipeline"}, "pipeline": set()}
"""What each room imports beside itself; bench/gpu measures kernels by themselves.

Two modules are looked up by name, each in one place, and only when they are asked for: pipeline/engine.py finds the
CUDA engine, app/benchmarks.py the command ``foveate bench``.
"""


def modules(room: str) -> list[Path]:
    return sorted((ROOT / room).rglob("*.py"))


def imported(path: Path) -> list[str]:
    """The modules of the project that a file imports anywhere, also inside functions and for types alone."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            if node.level:  # of a neighbour: pipeline/spec is also run from its folder, while C is built
                assert node.level == 1, f"{path}: a relative import from another folder"
                continue
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if name.startswith("foveate.")]


def part(parts: list[str]) -> str:
    """The folder or file of a room that a module lies in: ``parts`` are its names below the room."""
    return parts[0] if parts else "__init__"


def test_rooms_import_in_one_direction():
    found = {
        (path.relative_to(ROOT).as_posix(), name.split(".")[1])
        for room in ROOMS
        for path in modules(room)
        for name in imported(path)
        if name.split(".")[1] in set(ROOMS) - {room} - ALLOWED[room]
    }
    assert not found


@pytest.mark.parametrize(("room", "table"), TABLES.items())
def test_every_part_of_a_room_is_in_one_layer(room, table):
    listed = [name for _, names in table for name in names.split()]
    there = {part(list(path.relative_to(ROOT / room).with_suffix("").parts)) for path in modules(room)}
    assert sorted(listed) == sorted(there)


@pytest.mark.parametrize(("room", "table"), TABLES.items())
def test_layers_import_what_lies_below_them(room, table):
    layer = {name: place for place, (_, names) in enumerate(table) for name in names.split()}
    upward = []
    for path in modules(room):
        own = layer[part(list(path.relative_to(ROOT / room).with_suffix("").parts))]
        for name in imported(path):
            if name.startswith(f"foveate.{room}."):
                other = name.split(".")[2]
                if layer[other if other in layer else "__init__"] > own:
                    upward.append(f"{path.relative_to(ROOT)} imports {name}")
    assert not upward
