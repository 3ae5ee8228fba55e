"""Pixels: colour matrix and range, pixel formats, rotation. Expected colours follow from the textbook."""

import struct
from pathlib import Path

import av
import cv2
import numpy as np
import pytest
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.orientation import Orientation, turn, turn_chroma
from foveate.pipeline.sources.planes import PlaneReader

WEIGHTS = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}  # Kr, Kb
RED, GREY, BLUE = (255, 0, 0), (64, 64, 64), (0, 0, 255)


def first(path: Path) -> Frame:
    source = open_source(str(path), SourceSettings())
    frame = next(iter(source))
    source.close()
    return frame


def rgb(frame: Frame) -> NDArray[np.float64]:
    """R'G'B' in 0..255, float64[H, W, 3], from ITU-T H.273, 8.3, chroma repeated."""
    luma = frame.luma.astype(float)
    if frame.chroma is None:
        blue = red = np.full(luma.shape, 128.0)
    else:
        blue, red = (plane.astype(float) for plane in frame.chroma)
        if blue.shape != luma.shape:
            rows, columns = luma.shape
            blue, red = (p.repeat(2, 0)[:rows].repeat(2, 1)[:, :columns] for p in (blue, red))
    black, span, swing = (0, 255, 255) if frame.colour.full_range else (16, 219, 224)
    kr, kb = WEIGHTS[frame.colour.matrix]
    y, pb, pr = (luma - black) / span, (blue - 128) / swing, (red - 128) / swing
    r, b = y + 2 * (1 - kr) * pr, y + 2 * (1 - kb) * pb
    g = (y - kr * r - kb * b) / (1 - kr - kb)
    return np.clip(np.stack([r, g, b], -1) * 255, 0, 255)


def assert_colour(patch: NDArray[np.float64], expected: tuple[int, int, int], tolerance: int = 4) -> None:
    assert np.abs(patch - expected).max() <= tolerance


def assert_grey_and_red(frame: Frame) -> None:
    """The colours of the cases C1 and C2, away from the seam where chroma is shared."""
    picture = rgb(frame)
    assert_colour(picture[:, :28], GREY)
    assert_colour(picture[:, 36:], RED, 5)


@pytest.mark.parametrize("matrix", ["bt601", "bt709", "bt2020"])
@pytest.mark.parametrize("span", ["tv", "pc"])
def test_c1_matrix_and_range_are_honoured(cases: Path, matrix: str, span: str) -> None:
    frame = first(cases / f"C1_{matrix}_{span}.mp4")
    assert frame.colour == Colour(matrix, span == "pc")  # type: ignore[arg-type]
    assert_grey_and_red(frame)


@pytest.mark.parametrize("form", ["yuv420p10le", "yuv422p", "yuv444p10le"])
def test_c2_converted_formats_keep_matrix_and_range(cases: Path, form: str) -> None:
    frame = first(cases / f"C2_{form}.mp4")
    assert frame.colour == Colour("bt709", False)
    assert frame.subsampled is (form != "yuv444p10le")
    assert_grey_and_red(frame)


def test_c2_rgb_video_becomes_full_range_bt601(cases: Path) -> None:
    frame = first(cases / "C2_gbrp.mkv")
    assert frame.colour == Colour("bt601", True)
    assert_grey_and_red(frame)


def test_c3_grey_has_no_chroma_and_full_range(cases: Path) -> None:
    frame = first(cases / "C3_gray.mkv")
    assert frame.chroma is None
    assert frame.colour.full_range
    picture = rgb(frame)
    assert np.ptp(picture, axis=2).max() < 1e-9  # equal but for the rounding of float64


@pytest.mark.parametrize("name", ["I1_still.png", "I2_rgba64.png", "I2.tiff", "I2.bmp"])
def test_lossless_stills_come_back_within_two_levels(cases: Path, name: str) -> None:
    with av.open(str(cases / "I1_still.png")) as container:
        expected = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert np.abs(rgb(first(cases / name)) - expected).max() <= 2


def test_numbered_pictures_are_each_their_own(tmp_path: Path) -> None:
    """PNG's decoder adds a packet that is not marked as a keyframe to the picture before."""
    for number, colour in enumerate((RED, RED, BLUE, RED)):
        cv2.imwrite(str(tmp_path / f"f_{number}.png"), np.full((32, 48, 3), colour[::-1], np.uint8))
    source = open_source(str(tmp_path / "f_%d.png"), SourceSettings())
    found = [rgb(frame)[16, 24] for frame in source]
    source.close()
    np.testing.assert_allclose(found, [RED, RED, BLUE, RED], atol=2)  # 8-bit YCbCr


def test_a_palette_is_looked_up(cases: Path) -> None:
    with av.open(str(cases / "I2_palette.png")) as container:
        expected = next(container.decode(video=0)).to_ndarray(format="rgb24")
    assert np.abs(rgb(first(cases / "I2_palette.png")) - expected).max() <= 2


@pytest.mark.parametrize("form", ["rgb24", "bgr24", "rgba", "argb", "gbrp", "gbrp10le", "rgb48le", "gbrap"])
def test_every_rgb_format_round_trips_within_two_levels(form: str) -> None:
    picture = np.random.default_rng(1).integers(0, 256, (37, 53, 3), np.uint8)
    frame = VideoFrame.from_ndarray(picture, format="rgb24").reformat(format=form)
    luma, chroma, colour = PlaneReader("x").read(frame)
    assert np.abs(rgb(Frame(0, 0.0, luma, chroma, colour)) - picture).max() <= 2


@pytest.mark.parametrize(
    ("form", "sample", "expected"),
    [("gray10le", 800, 200), ("gray16le", 51400, 200), ("yuv420p10le", 800, 200), ("yuv444p12le", 3200, 200)],
)
@pytest.mark.parametrize("tag", [1, 2])
def test_deep_samples_are_shortened_without_changing_the_range(form: str, sample: int, expected: int, tag: int) -> None:
    frame = VideoFrame(32, 16, form)
    for plane in frame.planes:
        plane.update(struct.pack("<H", sample) * (plane.buffer_size // 2))
    frame.colorspace, frame.color_range = 1, tag
    luma, chroma, colour = PlaneReader("x").read(frame)
    assert colour == Colour("bt709", tag == 2)
    for plane in (luma, *(chroma or ())):
        # 16 bits span 257 steps per level, not 256, and libswscale dithers: one level
        assert np.abs(plane.astype(int) - expected).max() <= 1


@pytest.mark.parametrize(
    ("form", "tag"), [("yuvj422p", 2), ("yuv422p", 2), ("yuv422p", 1), ("nv12", 2), ("yuva444p", 2)]
)
def test_other_layouts_keep_their_range(form: str, tag: int) -> None:
    frame = VideoFrame(32, 16, form)
    for plane in frame.planes:
        plane.update(b"\xc8" * plane.buffer_size)
    frame.colorspace, frame.color_range = 1, tag
    luma, chroma, colour = PlaneReader("x").read(frame)
    assert colour == Colour("bt709", tag == 2)
    assert chroma is not None
    assert all((plane == 200).all() for plane in (luma, *chroma))


@pytest.mark.parametrize(
    ("form", "width", "height", "tags", "expected"),
    [
        ("yuv420p", 720, 576, (2, 0), Colour("bt601", False)),
        ("yuv420p", 1280, 720, (2, 0), Colour("bt709", False)),
        ("yuv420p", 1280, 544, (2, 0), Colour("bt709", False)),
        ("yuvj420p", 720, 576, (2, 0), Colour("bt601", True)),
        ("yuvj444p", 64, 64, (5, 2), Colour("bt601", True)),
        ("yuv420p", 64, 64, (9, 2), Colour("bt2020", True)),
        ("gray", 64, 64, (2, 0), Colour("bt601", True)),
        ("gray", 64, 64, (2, 1), Colour("bt601", False)),
    ],
)
def test_unspecified_tags(form: str, width: int, height: int, tags: tuple[int, int], expected: Colour) -> None:
    frame = VideoFrame(width, height, form)
    frame.colorspace, frame.color_range = tags
    assert PlaneReader("x").read(frame)[2] == expected


def test_tags_may_change_from_frame_to_frame() -> None:
    reader, frame = PlaneReader("x"), VideoFrame(64, 64, "yuv420p")
    for code, matrix in ((1, "bt709"), (9, "bt2020"), (6, "bt601")):
        frame.colorspace = code
        assert reader.read(frame)[2].matrix == matrix


@pytest.mark.parametrize(
    ("degrees", "regions"),
    [
        (90, {"top": BLUE, "bottom": RED}),
        (180, {"left": BLUE, "right": RED}),
        (270, {"top": RED, "bottom": BLUE}),
    ],
)
def test_g1_rotation_is_applied(cases: Path, degrees: int, regions: dict[str, tuple[int, int, int]]) -> None:
    frame = first(cases / f"G1_rot{degrees}.mp4")
    assert (frame.width, frame.height) == ((320, 240) if degrees == 180 else (240, 320))
    assert frame.luma.flags.c_contiguous
    picture = rgb(frame)
    rows, columns = frame.height // 2, frame.width // 2
    parts = {"top": picture[: rows - 2], "bottom": picture[rows + 2 :]}
    parts |= {"left": picture[:, : columns - 2], "right": picture[:, columns + 2 :]}
    for region, colour in regions.items():
        assert_colour(parts[region], colour, 6)  # the encoder's own error, seen in the unrotated file: 3


@pytest.mark.parametrize(
    ("matrix", "left", "notes"),
    [((-1, 0, 0, 1), BLUE, ("mirrored",)), ((1, 0, 0, -1), RED, ("mirrored",)), ((1, 0, 0, 1), RED, ())],
)
def test_g1_mirroring_is_applied(
    cases: Path, tmp_path: Path, matrix: tuple[int, ...], left: tuple[int, int, int], notes: tuple[str, ...]
) -> None:
    source = open_source(str(with_matrix(cases / "g.mp4", tmp_path, matrix)), SourceSettings())
    assert source.info.notes == notes
    assert_colour(rgb(next(iter(source)))[:, :158], left, 6)
    source.close()


def test_an_odd_angle_is_left_and_noted(cases: Path, tmp_path: Path) -> None:
    half = 0.5**0.5
    source = open_source(str(with_matrix(cases / "g.mp4", tmp_path, (half, half, -half, half))), SourceSettings())
    assert source.info.notes == ("rotation by -45 degrees not applied",)
    assert (source.info.width, source.info.height) == (320, 240)
    source.close()


def with_matrix(path: Path, folder: Path, terms: tuple[float, ...]) -> Path:
    """A copy of an MP4 with a, b, c, d of its track's display matrix replaced (ISO 14496-12, 8.3.2)."""
    data = bytearray(path.read_bytes())
    place = data.index(b"tkhd") + 4 + 40
    for offset, term in zip((0, 4, 12, 16), terms, strict=True):
        data[place + offset : place + offset + 4] = struct.pack(">i", round(term * 65536))
    target = folder / "turned.mp4"
    target.write_bytes(data)
    return target


@pytest.mark.parametrize(("orientation", "quarter_turns"), [(3, 2), (6, 3), (8, 1)])
def test_a_photo_is_turned_by_its_exif_orientation(
    cases: Path, tmp_path: Path, orientation: int, quarter_turns: int
) -> None:
    photo = (cases / "I2.jpg").read_bytes()
    tiff = b"MM\0*\0\0\0\x08\0\x01" + struct.pack(">HHIHHI", 0x0112, 3, 1, orientation, 0, 0)
    exif = b"Exif\0\0" + tiff
    (tmp_path / "photo.jpg").write_bytes(photo[:2] + b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + photo[2:])
    expected = np.rot90(first(cases / "I2.jpg").luma, quarter_turns)
    assert np.array_equal(first(tmp_path / "photo.jpg").luma, expected)


@pytest.mark.parametrize("shape", [(7, 5), (7, 4), (6, 5), (1, 5), (1, 1)])
@pytest.mark.parametrize(
    ("orientation", "quarter_turns"),
    [(Orientation(True, True, False), 1), (Orientation(False, True, True), 2), (Orientation(True, False, True), 3)],
)
def test_chroma_stays_on_its_pixels_when_odd_pictures_are_turned(
    shape: tuple[int, int], orientation: Orientation, quarter_turns: int
) -> None:
    rows, columns = shape
    luma = np.arange(rows * columns, dtype=np.uint8).reshape(shape)
    chroma = np.arange(-(-rows // 2) * -(-columns // 2), dtype=np.uint8).reshape(-(-rows // 2), -1)
    expected = np.rot90(chroma.repeat(2, 0)[:rows].repeat(2, 1)[:, :columns], quarter_turns)
    turned = turn_chroma(chroma, luma, orientation)
    if turned.shape != expected.shape:
        turned = turned.repeat(2, 0)[: expected.shape[0]].repeat(2, 1)[:, : expected.shape[1]]
    assert np.array_equal(turned, expected)
    assert np.array_equal(turn(luma, orientation), np.rot90(luma, quarter_turns))
