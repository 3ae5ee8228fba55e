"""Files that are read as settings: none is read without an end, whatever it is."""

import os
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from foveate.app.addresses import resolved
from foveate.app.main import main
from foveate.pipeline import small_files
from foveate.pipeline.cascade.linear_scorer import read_scorer
from foveate.pipeline.errors import FoveateError, SettingsError
from foveate.pipeline.layouts import load_layout
from foveate.pipeline.presets import load_preset
from foveate.pipeline.small_files import small_text

WAITS = 0.2  # seconds that a pipe gets in these tests, instead of 10


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_files, "TIMEOUT", WAITS)


def _endless(folder: Path, name: str) -> Path:
    """A file of that name whose content never ends."""
    link = folder / name
    link.symlink_to("/dev/zero")
    return link


def _silent(folder: Path, name: str) -> Path:
    """A pipe that nobody writes to."""
    os.mkfifo(folder / name)
    return folder / name


@pytest.mark.parametrize("make", [_endless, _silent])
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("mine.toml", ["run", "PICTURE", "-c", "FILE"]),
        ("mine.toml", ["run", "PICTURE", "--score.scorer", "linear", "--score.weights", "FILE"]),
        ("mine.npz", ["run", "PICTURE", "--score.scorer", "linear", "--score.weights", "FILE"]),
        ("mine.toml", ["run", "PICTURE", "--show-channels", "x.png", "--layout", "FILE"]),
        ("depth.py", ["run", "PICTURE", "--maps", "depth", "--depth", "FILE:estimate"]),
        ("shown.png", ["run", "PICTURE", "--query-image", "FILE"]),
        ("address", ["live", "@FILE"]),
        ("token", ["live", "/dev/video999", "--web", "127.0.0.1:0", "--web-token", "FILE"]),
        ("ca.pem", ["live", "https://127.0.0.1:9/", "--live.ca-file", "FILE"]),
    ],
    ids=lambda value: value if isinstance(value, str) else value[-2],
)
def test_a_file_without_an_end_is_told(
    make: object, name: str, arguments: list[str], tmp_path: Path, short: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert callable(make)
    file = make(tmp_path, name)
    picture = tmp_path / "grey.pgm"
    picture.write_bytes(b"P5 64 48 255\n" + bytes(range(256)) * 12)
    words = [word.replace("FILE", str(file)).replace("PICTURE", str(picture)) for word in arguments]
    assert main(words) in (1, 2)
    said = capsys.readouterr().err
    assert str(file) in said
    assert "bug in Foveate" not in said
    last = said.splitlines()[-1]
    assert last.startswith("foveate: error: ")
    assert len(last) < 300


@pytest.mark.parametrize("size", [2**20 + 1, 2**22])
def test_a_large_file_of_settings_is_refused(tmp_path: Path, size: int) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("#" * size)
    for read in (load_preset, load_layout):
        with pytest.raises(SettingsError, match="larger than 1,048,576 bytes"):
            read(str(file))
    with pytest.raises(SettingsError, match="larger than 1,048,576 bytes"):
        read_scorer(file)
    with pytest.raises(SettingsError, match="larger than 1,048,576 bytes"):
        resolved(f"@{file}")


def test_a_file_of_the_limit_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("budget = 7\n" + "#" * (2**20 - 11))
    assert load_preset(str(file)).budget == 7


def test_packed_weights_are_not_unpacked_beyond_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    np.savez_compressed(file, channels=np.array(["edges"]), weights=np.ones(1), bias=np.zeros(2**20))
    assert file.stat().st_size < 2**15
    with pytest.raises(SettingsError, match="more than the 1,048,576"):
        read_scorer(file)


def test_an_array_that_claims_to_be_huge_is_told(tmp_path: Path) -> None:
    file = tmp_path / "mine.npz"
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (%d,), }" % 2**50
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("channels", "weights"):
            archive.writestr(f"{name}.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    with pytest.raises(SettingsError, match="is not an NPZ file"):
        read_scorer(file)


def test_what_is_piped_in_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = _silent(tmp_path, "pipe")

    def write() -> None:
        with pipe.open("wb") as file:
            for part in (b"budget", b" = ", b"9\n"):
                file.write(part)
                file.flush()

    writer = threading.Thread(target=write)
    writer.start()
    assert small_text(pipe) == "budget = 9\n"
    writer.join(10)
    assert load_preset("/dev/null").budget == 273


@pytest.mark.parametrize("content", ["budget = " + "9" * 5000, "budget = 0x" + "f" * 5000, "a = " + "[" * 3000])
def test_what_tomllib_or_python_cannot_hold_is_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(content)
    for read in (load_preset, load_layout, lambda name: read_scorer(Path(name))):
        with pytest.raises(FoveateError) as caught:
            read(str(file))
        assert len(str(caught.value)) < 300
