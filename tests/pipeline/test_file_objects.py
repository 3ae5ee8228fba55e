"""Binary file objects as sources: the frames of the same file by its name, and nothing left open."""

import errno
import gzip
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.selection import Selection


@pytest.fixture
def clip(samples: Path) -> Path:
    return samples / "tree.mp4"


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Iterator[None]:
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    yield
    assert len(os.listdir("/proc/self/fd")) <= before  # noqa: PTH208


def tokens(selections: list[Selection]) -> list[list[list[int]]]:
    return [[each.x.tolist(), each.y.tolist(), each.lod.tolist()] for each in selections]


def chosen(source: Any) -> list[Selection]:
    with open_stream(source, engine="cpu", source={"frames": 5}) as stream:
        return list(stream)


def zipped(clip: Path, folder: Path) -> IO[bytes]:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.write(clip, "clip.mp4")
    return zipfile.ZipFile(folder / "a.zip").open("clip.mp4")


def gzipped(clip: Path, folder: Path) -> IO[bytes]:
    (folder / "a.gz").write_bytes(gzip.compress(clip.read_bytes()))
    return gzip.open(folder / "a.gz")  # type: ignore[return-value]


def temporary(clip: Path, folder: Path) -> IO[bytes]:
    file = tempfile.NamedTemporaryFile(dir=folder)  # noqa: SIM115
    file.write(clip.read_bytes())  # in part still in Python's buffer
    return file  # type: ignore[return-value]


KINDS: dict[str, Callable[[Path, Path], IO[bytes]]] = {
    "file": lambda clip, folder: clip.open("rb"),
    "unbuffered": lambda clip, folder: clip.open("rb", buffering=0),
    "bytes": lambda clip, folder: io.BytesIO(clip.read_bytes()),
    "member of an archive": zipped,
    "compressed": gzipped,
    "temporary": temporary,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_object_is_what_its_file_is(kind: str, clip: Path, tmp_path: Path) -> None:
    with KINDS[kind](clip, tmp_path) as file:
        assert tokens(chosen(file)) == tokens(chosen(clip))
        assert not file.closed


@pytest.mark.parametrize("kind", ["file", "bytes"])
def test_it_is_read_from_its_beginning_and_stays_where_it_is(kind: str, clip: Path, tmp_path: Path) -> None:
    with KINDS[kind](clip, tmp_path) as file:
        file.seek(777)
        assert len(chosen(file)) == 5
        assert file.tell() == 777


def test_it_may_be_closed_once_the_stream_is_open(clip: Path) -> None:
    with clip.open("rb") as file:
        stream = open_stream(file, engine="cpu")
    with stream:
        assert stream.info.name == str(clip)
        assert len(list(stream)) == 68


def test_the_name_is_shown_and_not_where_it_is_read(clip: Path) -> None:
    with open_stream(io.BytesIO(clip.read_bytes()), engine="cpu") as stream:
        assert stream.header.source == "<BytesIO>"
    with pytest.raises(SourceError, match=r"^<BytesIO>: not a video, or its header is missing or cut; check the file$"):
        chosen(io.BytesIO(b"no video at all" * 100))
    with pytest.raises(SourceError, match=r"^<BytesIO>: the file is empty; check how it was written$"):
        chosen(io.BytesIO())


def test_what_cannot_be_read_is_told(clip: Path, tmp_path: Path) -> None:
    closed = io.BytesIO(b"x")
    closed.close()
    with pytest.raises(SourceError, match=r"^<BytesIO>: the file object cannot be read: it is closed$"):
        chosen(closed)
    with pytest.raises(SourceError, match=r"the file object cannot be read: it yields text; open it in binary mode$"):
        chosen(io.StringIO("text"))
    with (
        (tmp_path / "new.mp4").open("wb") as file,
        pytest.raises(SourceError, match=r"new\.mp4: the file object cannot be read: it is open for writing only$"),
    ):
        chosen(file)

    class Gone(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            raise ConnectionResetError(104, "Connection reset by peer")

    with pytest.raises(SourceError, match=r"^<Gone>: the file object cannot be read: Connection reset by peer$"):
        chosen(Gone())


def test_no_room_for_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: object, copy: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", fail)
    with pytest.raises(SourceError, match=rf"there is no room for a copy in {tempfile.gettempdir()}; set TMPDIR"):
        chosen(io.BytesIO(b"video"))


def test_a_rate_is_for_frames_of_ones_own(clip: Path) -> None:
    with clip.open("rb") as file, pytest.raises(SettingsError, match=r"^fps is for frames of your own"):
        open_stream(file, engine="cpu", fps=3)
