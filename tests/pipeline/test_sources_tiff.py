"""TIFF pictures with JPEG inside: FFmpeg makes a black picture of them, and tells nothing."""

from pathlib import Path

import numpy as np
import pytest

from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

Image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install pillow")
UPRIGHT = np.zeros((64, 96, 3), np.uint8)
UPRIGHT[:32, :48], UPRIGHT[:32, 48:], UPRIGHT[32:, :48], UPRIGHT[32:, 48:] = (255, 0, 0), (0, 255, 0), (0, 0, 255), 255
STORED = {1: UPRIGHT, 2: UPRIGHT[:, ::-1], 3: UPRIGHT[::-1, ::-1], 4: UPRIGHT[::-1], 6: np.rot90(UPRIGHT)}
"""By orientation (TIFF 6.0, section 8)."""
LUMA = ((76, 150), (29, 255))  # of red, green, blue and white (ITU-T T.871)


def written(path: Path, stored: np.ndarray, mode: str = "RGB", orientation: int | None = None) -> Path:
    picture, exif = Image.fromarray(np.ascontiguousarray(stored)).convert(mode), Image.Exif()
    if orientation is not None:
        exif[0x112] = orientation
    picture.save(path, compression="jpeg", exif=exif)
    return path


def lumas(path: Path) -> list[list[list[int]]]:
    """Luma in the middle of the four quarters, of each picture."""
    source = open_source(str(path), SourceSettings())
    found = [[[int(f.luma[y, x]) for x in (24, 72)] for y in (16, 48)] for f in source]
    source.close()
    assert source.damage.frames == 0
    return found


@pytest.mark.parametrize("mode", ["RGB", "YCbCr", "CMYK"])
@pytest.mark.parametrize("orientation", STORED)
def test_it_is_decoded_and_turned(tmp_path: Path, mode: str, orientation: int) -> None:
    found = lumas(written(tmp_path / "a.tif", STORED[orientation], mode, orientation))
    assert np.abs(np.array(found) - [LUMA]).max() <= 3


def test_grey(tmp_path: Path) -> None:
    assert np.abs(np.array(lumas(written(tmp_path / "a.tif", UPRIGHT, "L"))) - [LUMA]).max() <= 3


def test_numbered_pictures(tmp_path: Path) -> None:
    written(tmp_path / "p1.tif", UPRIGHT)
    Image.fromarray(UPRIGHT).save(tmp_path / "p2.tif")
    written(tmp_path / "p3.tif", UPRIGHT, "YCbCr")
    assert np.abs(np.array(lumas(tmp_path / "p%d.tif")) - [LUMA] * 3).max() <= 3


def test_a_broken_one_is_damage_and_no_black_picture(tmp_path: Path) -> None:
    written(tmp_path / "p1.tif", UPRIGHT)
    content = written(tmp_path / "p2.tif", UPRIGHT).read_bytes()
    begin = content.index(b"\xff\xd8")
    (tmp_path / "p2.tif").write_bytes(content[:begin] + bytes(len(content) - begin))
    source = open_source(str(tmp_path / "p%d.tif"), SourceSettings())
    assert len(list(source)) == 1
    source.close()
    assert source.damage.frames == 1
