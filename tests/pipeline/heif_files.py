"""HEIF pictures written by hand (ISO/IEC 23008-12): a single one or a grid of tiles, with the properties asked for."""

import io
import struct
from dataclasses import dataclass
from pathlib import Path

import av
from PIL import Image

from tests.pipeline.made_sources import ffmpeg

TILE = 64  # pixels along each side
COLOURS = ("red", "lime", "blue", "white")  # of the four tiles, row by row
ROTATION, AXIS, APERTURE = b"irot", b"imir", b"clap"


def box(kind: bytes, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind: bytes, version: int, flags: int, *parts: bytes) -> bytes:
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def clap(width: int, height: int, right: int = 0, down: int = 0) -> bytes:
    """A clean aperture of whole pixels, moved off the centre by ``right`` and ``down`` (ISO/IEC 14496-12, 12.1.4)."""
    return box(APERTURE, struct.pack(">IIIIiIiI", width, 1, height, 1, right, 1, down, 1))


def irot(quarter_turns: int) -> bytes:
    """To be turned counter-clockwise."""
    return box(ROTATION, bytes([quarter_turns]))


def imir(axis: int) -> bytes:
    """0: top and bottom change places, 1: left and right."""
    return box(AXIS, bytes([axis]))


@dataclass(frozen=True)
class Coding:
    """Tiles of one codec: the item type, the brand, the configuration box, and the data of each."""

    item: bytes
    brand: bytes
    configuration: bytes
    tiles: list[bytes]


def nclx(matrix: int, full_range: bool) -> bytes:
    """Colours as of BT.709, but for the matrix (ISO/IEC 14496-12, 12.1.5)."""
    return box(b"colr", b"nclx", struct.pack(">HHHB", 1, 1, matrix, full_range << 7))


def hevc(folder: Path, form: str = "yuv420p") -> Coding:
    tiles, configuration = [], b""
    for colour in COLOURS:
        path = folder / f"{colour}.mp4"
        source = f"color={colour}:s={TILE}x{TILE}:d=0.04"
        encode = ["-frames:v", "1", "-c:v", "libx265", "-x265-params", "log-level=none:lossless=1"]
        ffmpeg("-f", "lavfi", "-i", source, *encode, "-pix_fmt", form, "-tag:v", "hvc1", str(path))
        configuration = _box_in(path.read_bytes(), b"hvcC")
        with av.open(str(path)) as container:
            tiles.append(b"".join(bytes(packet) for packet in container.demux(video=0)))
    return Coding(b"hvc1", b"heic", configuration, tiles)


def av1() -> Coding:
    tiles, configuration = [], b""
    for colour in COLOURS:
        file = io.BytesIO()
        Image.new("RGB", (TILE, TILE), colour).save(file, "AVIF", quality=100)
        data = file.getvalue()
        configuration = _box_in(data, b"av1C")
        tiles.append(_box_in(data, b"mdat")[8:])
    return Coding(b"av01", b"avif", configuration, tiles)


def _box_in(data: bytes, kind: bytes) -> bytes:
    start = data.index(kind) - 4
    return data[start : start + int.from_bytes(data[start : start + 4], "big")]


def single(coding: Coding, *properties: bytes) -> bytes:
    """The first tile alone."""
    return _file(coding, coding.tiles[:1], b"", (TILE, TILE), properties)


def grid(coding: Coding, width: int, height: int, *properties: bytes, columns: int = 2, rows: int = 2) -> bytes:
    """The four tiles over and over, cut at the right and at the bottom to the size given; then the properties count."""
    tiles = [coding.tiles[number % len(coding.tiles)] for number in range(columns * rows)]
    layout = struct.pack(">BBBBHH", 0, 0, rows - 1, columns - 1, width, height)
    return _file(coding, tiles, layout, (width, height), properties)


def _file(
    coding: Coding, tiles: list[bytes], layout: bytes, size: tuple[int, int], properties: tuple[bytes, ...]
) -> bytes:
    """``layout``: the data of the grid item, none for a single picture. The properties belong to the primary item."""
    items = [*tiles, layout] if layout else tiles
    count, primary = len(items), len(items) if layout else 1
    kinds = [coding.item] * len(tiles) + ([b"grid"] if layout else [])
    infos = [
        full(b"infe", 2, int(bool(layout) and kind != b"grid"), struct.pack(">HH4s", number, 0, kind), b"\0")
        for number, kind in enumerate(kinds, 1)
    ]
    shared = [coding.configuration, _extent(TILE, TILE), _pixels(), _extent(*size)]
    own = [*([] if layout else [0x81]), 4, 3, *(0x80 | number for number in range(5, 5 + len(properties)))]
    used = [own if number == primary else [0x81, 2, 3] for number in range(1, count + 1)]
    links = b"".join(struct.pack(">HB", number, len(each)) + bytes(each) for number, each in enumerate(used, 1))
    tiled = struct.pack(f">HH{len(tiles)}H", primary, len(tiles), *range(1, len(tiles) + 1))
    parts = [
        full(b"hdlr", 0, 0, struct.pack(">I4s12x", 0, b"pict"), b"\0"),
        full(b"pitm", 0, 0, struct.pack(">H", primary)),
        full(b"iinf", 0, 0, struct.pack(">H", count), *infos),
        full(b"iref", 0, 0, box(b"dimg", tiled)) if layout else b"",
        box(b"iprp", box(b"ipco", *shared, *properties), full(b"ipma", 0, 0, struct.pack(">I", count), links)),
    ]
    head = box(b"ftyp", coding.brand + bytes(4) + b"mif1" + coding.brand)
    start = len(head) + len(full(b"meta", 0, 0, *parts, _locations(items, 0))) + 8
    return head + full(b"meta", 0, 0, *parts, _locations(items, start)) + box(b"mdat", *items)


def _extent(width: int, height: int) -> bytes:
    return full(b"ispe", 0, 0, struct.pack(">II", width, height))


def _pixels() -> bytes:
    return full(b"pixi", 0, 0, bytes([3, 8, 8, 8]))


def _locations(items: list[bytes], start: int) -> bytes:
    entries, at = b"", start
    for number, item in enumerate(items, 1):
        entries += struct.pack(">HHHII", number, 0, 1, at, len(item))
        at += len(item)
    return full(b"iloc", 0, 0, b"\x44\x00", struct.pack(">H", len(items)), entries)
