"""Why nothing can be seen of a file: each cause has its words. And what only seems to be lost is shown."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.info import SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source
from tests.pipeline.made_sources import ffmpeg
from tests.pipeline.numbered import coded, number, pictures

PACKET = 188  # bytes of a transport stream


def read(path: Path) -> tuple[SourceInfo, list[Frame], Damage]:
    source = open_source(str(path), SourceSettings())
    frames = list(source)
    source.close()
    return source.info, frames, source.damage


def refused(path: Path) -> str:
    with pytest.raises(SourceError) as caught:
        open_source(str(path), SourceSettings())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def joined(path: Path, *parts: Path) -> Path:
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def test_an_encrypted_mp4(tmp_path: Path) -> None:
    """Some of its packets a decoder takes for pictures."""
    keys = [
        "-encryption_key",
        "76a6c65c5ea762046bd749a2e632ccbb",
        "-encryption_kid",
        "a7e61c373e219033c21091fa607bf3b8",
    ]
    path = coded(tmp_path / "a.mp4", "-encryption_scheme", "cenc-aes-ctr", *keys)
    assert "encrypted" in refused(path)


def scrambled(path: Path, spoil: bool) -> None:
    """Set the flag of scrambling in the packets of the video, and spoil what they hold."""
    data = bytearray(path.read_bytes())
    for at in range(0, len(data), PACKET):
        if (data[at + 1] & 0x1F) << 8 | data[at + 2] == 0x100:
            data[at + 3] |= 0x80 if spoil else 0
            begin = at + 5 + data[at + 4] if data[at + 3] & 0x20 else at + 4
            data[begin + 32 : at + PACKET] = bytes(value ^ 0x5A for value in data[begin + 32 : at + PACKET])
    path.write_bytes(data)


@pytest.mark.parametrize(("flagged", "word"), [(True, "encrypted"), (False, "damaged")])
def test_a_scrambled_transport_stream_is_told_from_a_damaged_one(tmp_path: Path, flagged: bool, word: str) -> None:
    path = coded(tmp_path / "a.ts")
    scrambled(path, flagged)
    message = refused(path)
    assert word in message
    assert ("encrypted" in message) == flagged


def piped(content: bytes, folder: Path) -> Path:
    """A named pipe that brings ``content`` to whoever opens it."""
    path = folder / "pipe"
    os.mkfifo(path)

    def bring() -> None:
        with suppress(BrokenPipeError):
            path.write_bytes(content)

    threading.Thread(target=bring, daemon=True).start()
    return path


def test_an_mp4_from_a_pipe_whose_index_comes_last(tmp_path: Path) -> None:
    whole = tmp_path / "a.mp4"  # larger than FFmpeg's buffer, in which it can go back
    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=640x480:r=30", "-t", 1, "-c:v", "mpeg4", "-q:v", 2, whole)
    message = refused(piped(whole.read_bytes(), tmp_path))
    assert "its index is at the end" in message
    assert "faststart" in message


def test_an_mp4_from_a_pipe_whose_index_comes_first(tmp_path: Path) -> None:
    whole = coded(tmp_path / "a.mp4", "-movflags", "+faststart")
    assert len(read(piped(whole.read_bytes(), tmp_path))[1]) == 30


def cut(source: Path, target: Path, begin: float, end: float = 1.0) -> Path:
    """The part of a transport stream between two shares of its length."""
    content = source.read_bytes()
    count = len(content) // PACKET
    target.write_bytes(content[int(begin * count) * PACKET : int(end * count) * PACKET])
    return target


def test_the_first_keyframe_is_waited_for_however_long(tmp_path: Path) -> None:
    """Cameras of the "smart" kind send one in a minute."""
    scarce = ["-g", 1200, "-keyint_min", 1200, "-sc_threshold", 0]
    whole = coded(tmp_path / "whole.ts", *scarce, count=1230)
    info, frames, damage = read(cut(whole, tmp_path / "cut.ts", 0.05))
    assert [number(frame) for frame in frames] == [n % 256 for n in range(1200, 1230)]
    assert damage == Damage()
    assert 1000 < info.undecodable_start < 1200
    message = refused(cut(whole, tmp_path / "none.ts", 0.05, 0.5))
    assert "packets is a keyframe" in message


@pytest.mark.parametrize("audio_first", [False, True])
@pytest.mark.parametrize("codec", ["libx264", "mpeg2video"])
def test_a_transport_stream_goes_on_under_another_pid(tmp_path: Path, audio_first: bool, codec: str) -> None:
    late = ["-output_ts_offset", 1, "-mpegts_start_pid", 0x200]
    sound = ["-f", "lavfi", "-i", "sine=d=1", "-map", 1, "-map", 0, "-c:a", "mp2"] if audio_first else []
    one = coded(tmp_path / "1.ts", "-mpegts_start_pid", 0x100)
    picture = pictures(30)
    two = tmp_path / "2.ts"
    ffmpeg(*picture, *sound, "-t", 1, "-c:v", codec, "-pix_fmt", "yuv420p", "-q:v", 2, "-bf", 0, *late, two)
    _, frames, damage = read(joined(tmp_path / "a.ts", one, two))
    assert [number(frame) for frame in frames] == list(range(60))
    assert damage == Damage()
    assert not any(frame.discontinuity for frame in frames)


def test_sampling_goes_on_under_another_pid(tmp_path: Path) -> None:
    one = coded(tmp_path / "1.ts", "-mpegts_start_pid", 0x100)
    two = coded(tmp_path / "2.ts", "-mpegts_start_pid", 0x200, "-output_ts_offset", 1, first=30)
    source = open_source(str(joined(tmp_path / "a.ts", one, two)), SourceSettings(every=10))
    assert [(frame.index, number(frame)) for frame in source] == [(n, n) for n in range(0, 60, 10)]
    source.close()
    assert source.damage == Damage()


def test_another_program_of_a_transport_stream_is_not_what_it_goes_on_with(tmp_path: Path) -> None:
    other = ["-f", "lavfi", "-i", "testsrc2=s=320x240:r=30", "-map", 0, "-map", 1]
    programs = ["-program", "title=one:st=0", "-program", "title=two:st=1", "-t", 1, "-g", 10]
    path = tmp_path / "a.ts"
    ffmpeg(*pictures(), *other, *programs, "-c:v", "libx264", "-pix_fmt", "yuv420p", path)
    _, frames, _ = read(path)
    assert [number(frame) for frame in frames] == list(range(30))


FRAGMENTED = ["-movflags", "frag_keyframe+empty_moov+default_base_moof", "-g", 10]


@pytest.mark.parametrize("first", [FRAGMENTED, []], ids=["fragmented", "indexed"])
@pytest.mark.parametrize("second", [FRAGMENTED, []], ids=["fragmented", "indexed"])
def test_mp4_files_that_were_joined_are_read_one_after_the_other(
    tmp_path: Path, first: list[object], second: list[object]
) -> None:
    parts = coded(tmp_path / "1.mp4", *first), coded(tmp_path / "2.mp4", *second, first=30)
    info, frames, damage = read(joined(tmp_path / "a.mp4", *parts))
    assert [number(frame) for frame in frames] == list(range(60))
    assert damage == Damage()
    assert info.frames is None
    assert [frame.index for frame in frames if frame.discontinuity] == [30]
    assert [frame.time for frame in frames] == pytest.approx([n / 30 for n in range(60)])


def test_what_follows_and_cannot_be_read_is_damage(tmp_path: Path) -> None:
    one, two = coded(tmp_path / "1.mp4"), coded(tmp_path / "2.mp4")
    broken = two.read_bytes().replace(b"moov", b"void")
    two.write_bytes(broken)
    _, frames, damage = read(joined(tmp_path / "a.mp4", one, two))
    assert len(frames) == 30
    assert damage.frames == 1
    assert "what follows in the file cannot be read" in damage.messages[0]


def test_a_recording_whose_index_was_never_written(tmp_path: Path) -> None:
    content = coded(tmp_path / "a.mp4").read_bytes()
    (tmp_path / "a.mp4").write_bytes(content[: content.index(b"moov") - 4])
    assert "without its index" in refused(tmp_path / "a.mp4")


def test_fragments_without_their_header(tmp_path: Path) -> None:
    content = coded(tmp_path / "a.mp4", *FRAGMENTED).read_bytes()
    (tmp_path / "a.mp4").write_bytes(content[content.index(b"moof") - 4 :])
    assert "initialization segment" in refused(tmp_path / "a.mp4")
