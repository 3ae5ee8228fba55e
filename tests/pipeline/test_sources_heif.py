"""HEIC and AVIF pictures, single and made of tiles: the whole picture, cropped and turned once."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foveate.pipeline import open_stream
from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Colour
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.heif import still_of
from foveate.pipeline.sources.opacity import opaque
from tests.pipeline.heif_files import COLOURS, TILE, Coding, av1, box, clap, grid, hevc, imir, irot, nclx, single
from tests.pipeline.made_sources import read

Change = Callable[[NDArray[np.int_]], NDArray[np.int_]]
LUMA = {"red": 81, "lime": 145, "blue": 41, "white": 235}  # BT.601, 16 to 235
FULL_LUMA = {"red": 76, "lime": 150, "blue": 29, "white": 255}
PROPERTIES: dict[str, tuple[tuple[bytes, ...], Change]] = {
    "none": ((), lambda picture: picture),
    "clap": ((clap(81, 70, 10, -4),), lambda picture: picture[16:86, 30:111]),
    "irot 1": ((irot(1),), lambda picture: np.rot90(picture, 1)),
    "irot 2": ((irot(2),), lambda picture: np.rot90(picture, 2)),
    "irot 3": ((irot(3),), lambda picture: np.rot90(picture, 3)),
    "imir 0": ((imir(0),), lambda picture: picture[::-1]),
    "imir 1": ((imir(1),), lambda picture: picture[:, ::-1]),
    "irot, imir": ((irot(3), imir(0)), lambda picture: np.rot90(picture, 3)[::-1]),
    "imir, irot": ((imir(0), irot(3)), lambda picture: np.rot90(picture[::-1], 3)),
    "all": ((clap(80, 70, 10, -4), irot(1), imir(0)), lambda picture: np.rot90(picture[16:86, 30:110], 1)[::-1]),
}


@pytest.fixture(scope="module", params=["heic", "avif"])
def coding(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Coding:
    return hevc(tmp_path_factory.mktemp("tiles")) if request.param == "heic" else av1()


@pytest.fixture(scope="module")
def heic(tmp_path_factory: pytest.TempPathFactory) -> Coding:
    return hevc(tmp_path_factory.mktemp("tiles"))


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def tiled(width: int, height: int, luma: dict[str, int]) -> NDArray[np.int_]:
    """The luma of a picture of four tiles in four colours."""
    values = np.array([luma[colour] for colour in COLOURS]).reshape(2, 2)
    return values.repeat(TILE, 0).repeat(TILE, 1)[:height, :width]


def assert_luma(found: NDArray[np.uint8], expected: NDArray[np.int_], tolerance: int = 1) -> None:
    assert found.shape == expected.shape
    assert np.abs(found.astype(int) - expected).max() <= tolerance


@pytest.mark.parametrize("name", PROPERTIES)
def test_tiles_are_joined_and_then_cropped_and_turned(tmp_path: Path, coding: Coding, name: str) -> None:
    properties, change = PROPERTIES[name]
    info, (frame,) = read(written(tmp_path / "photo", grid(coding, 120, 110, *properties)))
    luma = FULL_LUMA if frame.colour.full_range else LUMA
    expected = change(tiled(120, 110, luma))
    assert_luma(frame.luma, expected, 2)  # AV1 here is not without loss
    assert (info.height, info.width) == expected.shape
    assert (info.frames, info.fps) == (1, None)
    assert (info.cropping is not None and info.cropping.declared == (120, 110)) is (name in {"clap", "all"})


@pytest.mark.parametrize("name", PROPERTIES)
def test_single_pictures_are_cropped_and_turned_once(tmp_path: Path, coding: Coding, name: str) -> None:
    turns = [each for each in PROPERTIES[name][0] if each[4:8] != b"clap"]
    cropped = clap(40, 30, 4, -6) if len(turns) < len(PROPERTIES[name][0]) else b""
    info, (frame,) = read(written(tmp_path / "photo", single(coding, *filter(None, [cropped]), *turns)))
    size = (40, 30) if cropped else (TILE, TILE)
    assert (frame.width, frame.height) == (size[::-1] if "irot 1" in name or "all" in name else size)
    assert (info.width, info.height) == (frame.width, frame.height)
    assert np.ptp(frame.luma.astype(int)) <= 2


@pytest.mark.parametrize("size", [(128, 128), (119, 109), (65, 65)])
def test_sizes_that_cut_the_last_tiles(tmp_path: Path, heic: Coding, size: tuple[int, int]) -> None:
    _, (frame,) = read(written(tmp_path / "photo", grid(heic, *size)))
    assert_luma(frame.luma, tiled(*size, LUMA))
    assert frame.chroma is not None
    assert frame.chroma[0].shape == (-(-size[1] // 2), -(-size[0] // 2))
    blue = np.array([90, 54, 240, 128]).reshape(2, 2).repeat(TILE // 2, 0).repeat(TILE // 2, 1)  # Cb, BT.601
    assert_luma(frame.chroma[0], blue[: frame.chroma[0].shape[0], : frame.chroma[0].shape[1]])


def test_as_many_tiles_as_phones_write(tmp_path: Path, heic: Coding) -> None:
    _, (frame,) = read(written(tmp_path / "photo", grid(heic, 9 * TILE - 4, 5 * TILE - 2, columns=9, rows=5)))
    values = np.array([LUMA[COLOURS[number % 4]] for number in range(45)]).reshape(5, 9)
    assert_luma(frame.luma, values.repeat(TILE, 0).repeat(TILE, 1)[:-2, :-4])


@pytest.mark.parametrize("form", ["yuv420p10le", "yuv444p", "yuv422p10le"])
def test_tiles_of_other_pixel_formats(tmp_path: Path, form: str) -> None:
    """10-bit pictures of 4:2:2 are what some cameras write."""
    info, (frame,) = read(written(tmp_path / "photo", grid(hevc(tmp_path, form), 120, 110)))
    assert info.pixel_format == form
    assert_luma(frame.luma, tiled(120, 110, LUMA), 2)


@pytest.mark.parametrize(("matrix", "name"), [(1, "bt709"), (9, "bt2020"), (6, "bt601")])
@pytest.mark.parametrize("full_range", [False, True])
def test_colours_as_the_picture_says(tmp_path: Path, heic: Coding, matrix: int, name: str, full_range: bool) -> None:
    """The property counts, not what is said in the tiles (ISO/IEC 23008-12, 6.5.5)."""
    _, (frame,) = read(written(tmp_path / "photo", grid(heic, 120, 110, nclx(matrix, full_range))))
    assert frame.colour == Colour(name, full_range)  # type: ignore[arg-type]


def test_a_stream_of_one_picture(tmp_path: Path, heic: Coding) -> None:
    path = written(tmp_path / "photo.heic", grid(heic, 120, 110))
    with open_stream(str(path)) as stream:
        (selection,) = stream
    assert (selection.width, selection.height) == (120, 110)
    assert opaque(path) is None


def test_a_tile_that_is_damaged_is_grey_and_told(tmp_path: Path, heic: Coding) -> None:
    broken = Coding(
        heic.item, heic.brand, heic.configuration, [*heic.tiles[:2], bytes(len(heic.tiles[2])), heic.tiles[3]]
    )
    source = open_source(str(written(tmp_path / "photo", grid(broken, 128, 128))), SourceSettings())
    (frame,) = source
    source.close()
    assert_luma(frame.luma, tiled(128, 128, LUMA | {"blue": 128}))
    assert source.damage.frames > 0
    assert any("1 of the picture's 4 tiles" in message for message in source.damage.messages)


def swapped(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new)


BROKEN: dict[str, Callable[[bytes], bytes]] = {
    "composed of others in a way that is not supported (iovl)": swapped(b"\0\0grid\0", b"\0\0iovl\0"),
    "do not make up its picture of 220x110": swapped(bytes([120, 0, 0, 0, 110]), bytes([220, 0, 0, 0, 110])),
    "of which 3 can be read": swapped(bytes([0, 1, 0, 2, 0, 3, 0, 4]), bytes([0, 1, 0, 2, 0, 3, 0, 9])),
    "only tiles of a picture": lambda data: data + box(b"moov"),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_never_a_silent_tile(tmp_path: Path, heic: Coding, reason: str) -> None:
    data, change = grid(heic, 120, 110), BROKEN[reason]
    assert change(data) != data
    path = written(tmp_path / "photo.heic", change(data))
    with pytest.raises(SourceError) as caught:
        open_source(str(path), SourceSettings())
    assert reason in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_there_is_one_picture_to_choose(tmp_path: Path, heic: Coding) -> None:
    path = written(tmp_path / "photo.heic", grid(heic, 120, 110))
    open_source(str(path), SourceSettings(stream=0)).close()
    with pytest.raises(SourceError, match="no video stream 1; there is one picture"):
        open_source(str(path), SourceSettings(stream=1))


@pytest.mark.parametrize("length", range(20, 700, 40))
def test_a_file_that_is_cut_in_its_head_is_no_crash(tmp_path: Path, heic: Coding, length: int) -> None:
    path = written(tmp_path / "photo.heic", grid(heic, 120, 110, clap(80, 70))[:length])
    with pytest.raises(SourceError):
        open_source(str(path), SourceSettings())


HEAD = grid(av1(), 120, 110, clap(80, 70), irot(1), imir(1), nclx(1, True)).partition(b"mdat")[0]


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.integers(0, len(HEAD) - 1), st.integers(0, 255), min_size=1, max_size=9))
def test_no_content_is_a_crash(changes: dict[int, int]) -> None:
    content = bytearray(HEAD)
    for place, value in changes.items():
        content[place] = value
    still = still_of(io.BytesIO(content), len(content))
    assert still is None or still.geometry.crop is None or min(still.geometry.crop.kept) > 0
