"""Addresses: passwords, names that look like patterns, numbered files."""

from pathlib import Path

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.address import is_pattern, numbered_files, redact, shown


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("rtsp://user:secret@host:554/a", "rtsp://host:554/a"),
        ("rtsp://user:sec@ret@host/a", "rtsp://host/a"),
        ("rtsp://user:sec/ret@host/a", "rtsp://host/a"),
        ("rtsp://user:sec?ret#@host/a", "rtsp://host/a"),
        ("rtsp://user@host/a", "rtsp://host/a"),
        ("rtsp://host/a?user=me&password=secret&b=1", "rtsp://host/a?user=me&password=***&b=1"),
        ("http://host/a?token=secret", "http://host/a?token=***"),
        ("rtsp://host/user=me_password=secret_channel=1", "rtsp://host/user=me_password=***"),
        ("http://host/a.cgi?loginuse=me&loginpas=secret", "http://host/a.cgi?loginuse=me&loginpas=***"),
        ("http://host/a?usr=me&pw=secret&psw=secret#b", "http://host/a?usr=me&pw=***&psw=***#b"),
        ("https://host/a.m3u8?Expires=1&Signature=secret", "https://host/a.m3u8?Expires=1&Signature=***"),
        ("rtsp:/user:secret@host/a", "rtsp:/host/a"),
        ("rtsp://host:554/cam1", "rtsp://host:554/cam1"),
        ("clips/a@b.mp4", "clips/a@b.mp4"),
    ],
)
def test_passwords_are_removed(address: str, expected: str) -> None:
    assert redact(address) == expected


def test_a_name_is_shown_in_one_printable_line() -> None:
    assert shown("a\nb\t日本\udce9.mp4") == "a\\nb\\t日本\\udce9.mp4"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f_%d.png", True),
        ("f_%04d.png", True),
        ("50%%_%d.png", True),
        ("f.png", False),
        ("%d_%d.png", False),
        ("50%.png", False),
        ("%%d.png", False),
        ("%s.png", False),
    ],
)
def test_patterns(name: str, expected: bool) -> None:
    assert is_pattern(Path(name)) is expected


def test_numbered_files_come_in_numeric_order_and_may_have_gaps(tmp_path: Path) -> None:
    for name in ("a_2.png", "a_10.png", "a_007.png", "a_x.png", "b_1.png", "a_1.png.txt"):
        (tmp_path / name).touch()
    assert [file.name for file in numbered_files(tmp_path / "a_%d.png")] == ["a_2.png", "a_10.png"]
    assert [file.name for file in numbered_files(tmp_path / "a_%03d.png")] == ["a_007.png"]


@pytest.mark.parametrize("pattern", ["a_%d.png", "nowhere/a_%d.png"])
def test_a_pattern_without_files(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(SourceError, match=r"a_%d.png: (no file matches|its folder cannot be read)"):
        open_source(str(tmp_path / pattern), SourceSettings())


def test_the_secret_of_a_network_address_is_in_no_message() -> None:
    with pytest.raises(SourceError, match="host/a") as caught:
        open_source("rtsp://user:secret@host/a", SourceSettings())
    assert "secret" not in str(caught.value)
