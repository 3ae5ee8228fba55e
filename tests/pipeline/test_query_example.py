"""A picture as a query to the attributes encoder: its main colours."""

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest

from foveate.pipeline.attributes.colours import NAMES, dominant_colours
from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.errors import SourceError
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.example import Example, example
from foveate.pipeline.query.terms import relevance
from foveate.pipeline.stream import open_stream

RGB = {"red": (220, 20, 20), "white": (250, 250, 250), "blue": (20, 40, 220), "grey": (128, 128, 128)}


def picture(**shares: int) -> np.ndarray:
    """Columns of each colour, R'G'B' uint8[20, 100, 3]; shares are percents."""
    return np.concatenate([np.full((20, share, 3), RGB[name], np.uint8) for name, share in shares.items()], axis=1)


def test_the_colours_of_a_fifth_of_the_picture_count() -> None:
    every = np.ones((20, 100), np.bool_)
    assert [NAMES[k] for k in dominant_colours(Example(picture(red=60, white=30, blue=10), every))] == ["white", "red"]
    assert [NAMES[k] for k in dominant_colours(Example(picture(blue=100), every))] == ["blue"]


def transparent(path: Path) -> Path:
    """A blue square with a white corner in a transparent picture, under which there is red."""
    pixels = np.zeros((90, 120, 4), np.uint8)
    pixels[..., :3] = RGB["red"][::-1]
    pixels[40:70, 50:90] = *RGB["blue"][::-1], 255
    pixels[40:60, 50:70] = *RGB["white"][::-1], 255
    cv2.imwrite(str(path), pixels)
    return path


@pytest.mark.parametrize("name", ["crop.png", "crop.webp"])
def test_what_is_transparent_shows_nothing(tmp_path: Path, name: str) -> None:
    shown = example(str(transparent(tmp_path / name)))
    assert shown.shows.shape == (30, 40)
    assert shown.shows.all()
    assert {NAMES[index] for index in dominant_colours(shown)} == {"blue", "white"}


def test_a_round_thing_is_filled_with_its_own_colour(tmp_path: Path) -> None:
    disc = cv2.circle(np.zeros((80, 80), np.uint8), (40, 40), 30, 255, -1)
    blue = np.zeros((80, 80, 3), np.uint8)
    blue[disc > 0] = RGB["blue"][::-1]
    cv2.imwrite(str(tmp_path / "disc.png"), np.dstack([blue, disc]))
    shown = example(str(tmp_path / "disc.png"))
    np.testing.assert_array_equal(shown.shows, disc[10:71, 10:71] > 0)
    assert np.abs(shown.filled().astype(int) - RGB["blue"]).max() <= 2  # PNG passes through YCbCr, and a mean of it
    assert [NAMES[index] for index in dominant_colours(shown)] == ["blue"]


def test_a_palette_with_a_transparent_entry(tmp_path: Path) -> None:
    path = tmp_path / "palette.png"
    path.write_bytes(palette_png(np.pad(np.ones((10, 10), np.uint8), 20), [RGB["red"], RGB["blue"]], b"\0\xff"))
    assert [NAMES[index] for index in dominant_colours(example(str(path)))] == ["blue"]


def palette_png(indices: np.ndarray, palette: list[tuple[int, int, int]], alpha: bytes) -> bytes:
    """By the PNG specification (ISO/IEC 15948): colour type 3 with a tRNS chunk."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = indices.shape
    rows = b"".join(b"\0" + row.tobytes() for row in indices)
    head = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    colours = bytes(value for colour in palette for value in colour)
    chunks = [(b"IHDR", head), (b"PLTE", colours), (b"tRNS", alpha), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in chunks)


def test_an_example_that_is_all_transparent_is_refused(tmp_path: Path) -> None:
    cv2.imwrite(str(tmp_path / "none.png"), np.zeros((20, 30, 4), np.uint8))
    with pytest.raises(SourceError, match=r"none\.png: the picture is wholly transparent"):
        example(str(tmp_path / "none.png"))


def test_a_cell_with_any_of_them_is_relevant_and_others_are_not(tmp_path: Path) -> None:
    path = tmp_path / "crop.png"
    cv2.imwrite(str(path), picture(red=50, white=50)[..., ::-1])
    compiled = AttributesEncoder().compile([Phrase(str(path), image=str(path))])
    assert compiled.terms is not None
    (note,) = compiled.notes
    assert note.endswith("its colours only: white, red")
    inputs = np.zeros((18, 4), np.float32)
    for cell, shares in enumerate(
        ({"red": 1.0}, {"white": 0.2, "red": 0.2}, {"blue": 1.0}, {"grey": 0.98, "red": 0.02})
    ):
        for name, share in shares.items():
            inputs[NAMES.index(name), cell] = share
    np.testing.assert_allclose(relevance(compiled.terms, inputs)[0], [1, 1, 0, 0], atol=1e-6)


def test_from_a_picture_to_tokens(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    frame = rng.integers(100, 156, (256, 480, 1), np.uint8).repeat(3, axis=2)
    frame[64:128, 320:384] = RGB["red"][::-1]
    cv2.imwrite(str(tmp_path / "frame.png"), frame)
    cv2.imwrite(str(tmp_path / "crop.png"), frame[70:120, 325:380])
    asked = {"query_image": [str(tmp_path / "crop.png")], "budget": 60, "engine": "cpu"}
    with open_stream(str(tmp_path / "frame.png"), **asked) as stream:
        (found,) = stream
    fine = {(y // 16, x // 16) for x, y, lod in zip(found.x, found.y, found.lod, strict=True) if lod == 0}
    assert {(row, column) for row in range(4, 8) for column in range(20, 24)} <= fine


def test_an_example_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.png") as caught:
        open_stream(str(tmp_path / "any.mp4"), query_image=[str(tmp_path / "absent.png")])
    assert "\n" not in str(caught.value)
