"""What a source is called in the header, in messages and in warnings, where it is given a name."""

import io
import shutil
from pathlib import Path

import numpy as np
import pytest

from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.sources.address import shown
from foveate.pipeline.stream import open_stream

FEW = {"frames": 2}
GIVEN = "s3://me:secret@bucket/films/a.mp4"
SHOWN = "s3://bucket/films/a.mp4"


@pytest.fixture
def copy(samples: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(samples / "tree.mp4", tmp_path / "copy-1234.mp4"))


def test_a_file(copy: Path) -> None:
    with open_stream(copy, name=GIVEN, source=FEW) as stream:
        assert (stream.header.source, stream.info.name) == (SHOWN, SHOWN)
        assert len(list(stream)) == 2
    assert shown(str(copy)) == str(copy)
    with open_stream(copy, source=FEW) as stream:
        assert stream.header.source == str(copy)


def test_a_file_object_and_own_frames(copy: Path) -> None:
    with open_stream(io.BytesIO(copy.read_bytes()), name=GIVEN, source=FEW) as stream:
        assert stream.header.source == SHOWN
    with open_stream([np.zeros((32, 32, 3), np.uint8)], name="screen 1") as stream:
        assert stream.header.source == "screen 1"
    with pytest.raises(SourceError, match="screen 1: no frame came"):
        open_stream([], name="screen 1")


def test_messages(tmp_path: Path) -> None:
    (tmp_path / "copy.mp4").write_text("no video\n" * 50)
    for source in (tmp_path / "copy.mp4", tmp_path / "gone.mp4", io.BytesIO(b"no video")):
        with pytest.raises(SourceError) as caught:
            open_stream(source, name=GIVEN)
        assert str(caught.value).startswith(f"{SHOWN}: ")
        assert "copy.mp4" not in str(caught.value)
        assert shown(str(source)) == str(source)


def test_two_streams_of_one_file(copy: Path) -> None:
    with open_stream(copy, name="first", source=FEW) as first, open_stream(copy, name="second", source=FEW) as second:
        first.close()
        assert (first.header.source, second.header.source) == ("first", "second")
        assert shown(str(copy)) == "second"
    assert shown(str(copy)) == str(copy)


@pytest.mark.parametrize("name", ["", "  ", 3])
def test_what_is_no_name(name: object, copy: Path) -> None:
    with pytest.raises(SettingsError, match="name must be a text that is not empty"):
        open_stream(copy, name=name)  # type: ignore[arg-type]
