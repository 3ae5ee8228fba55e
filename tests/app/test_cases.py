"""Inputs that broke other pipelines, through the whole program: records, sizes, times, colours, exit codes."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.app.main import main
from foveate.pipeline import open_stream
from foveate.pipeline.sinks.json_lines import read_json_lines
from tests.pipeline.made_sources import ffmpeg

WHOLE = {
    "T1_vfr.mp4": (40, 320, 240),
    "T3_nopts.h264": (60, 320, 240),
    "T5_start100.mkv": (60, 320, 240),
    "T7_nocount.mkv": (60, 320, 240),
    "T8_one.mp4": (1, 320, 240),
    "G1_rot90.mp4": (30, 240, 320),
    "G3_321x241.mkv": (15, 321, 241),
    "G3_31x639.mkv": (15, 31, 639),
    "G3_17x1.mkv": (15, 17, 1),
    "G3_1x1.mkv": (15, 1, 1),
    "C1_bt709_tv.mp4": (6, 64, 64),
    "C3_gray.mkv": (30, 320, 240),
    "C3_alpha.mov": (30, 320, 240),
    "C3_422.mp4": (30, 320, 240),
    "C3_444.mp4": (30, 320, 240),
    "C4_interlaced.mp4": (50, 720, 576),
    "B5_cover.mp4": (60, 320, 240),
    "B5_picture_first.mkv": (60, 320, 240),
    "B6_two.mkv": (30, 320, 240),
    "B7 ü 日本 #1.mp4": (60, 320, 240),
    "B7_%d_%03d.mp4": (60, 320, 240),
    "-B7.mp4": (60, 320, 240),
    "I1.gif": (10, 64, 64),
    "seq/f_%04d.png": (10, 64, 64),
    "I1_still.png": (1, 64, 64),
    "S1_static.mp4": (300, 320, 240),
    "S1_black.mp4": (60, 320, 240),
    "S1_noise.mp4": (60, 320, 240),
}


def run(*arguments: str) -> int:
    return main(["run", *arguments, "--quiet"])


def records_of(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    header, records = read_json_lines(path)
    return header, list(records)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_every_frame_has_its_record(name: str, memory: str, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    # An absolute path: a name that begins with a dash would otherwise be taken for a flag.
    assert run(str(cases / name), "--memory", memory, "--out", str(out)) == 0
    header, records = records_of(out)
    count, width, height = WHOLE[name]
    assert len(records) == count
    assert (header["width"], header["height"]) == (width, height)
    assert [record["index"] for record in records] == list(range(count))
    times = [record["time"] for record in records]
    assert times[0] == 0
    assert all(later > earlier for earlier, later in itertools.pairwise(times))
    for record in records:
        lengths = {len(record[field]) for field in ("x", "y", "lod", "score", "information", "perspective", "age")}
        assert len(lengths) == 1
        assert max(lengths) <= 273
        assert all(0 <= value <= 1 for value in record["score"])  # NaN is in no range


def test_times_are_the_files_own(cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    assert run(str(cases / "T1_vfr.mp4"), "--out", str(out)) == 0
    assert records_of(out)[1][10]["time"] == pytest.approx(1.0, abs=1e-3)
    assert run(str(cases / "I1.gif"), "--out", str(out)) == 0
    assert np.diff([record["time"] for record in records_of(out)[1]]) == pytest.approx(0.1, abs=1e-3)
    assert run(str(cases / "T5_start100.mkv"), "--out", str(out)) == 0
    assert records_of(out)[0]["start"] == pytest.approx(100, abs=0.1)


@pytest.mark.parametrize(("name", "word"), [("T3_nopts.h264", "made up"), ("C4_interlaced.mp4", "interlaced")])
def test_the_header_says_what_is_odd(name: str, word: str, cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    assert run(str(cases / name), "--out", str(out)) == 0
    assert any(word in note for note in records_of(out)[0]["notes"])


def test_a_change_of_size_is_a_keyframe(cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    assert run(str(cases / "G6_sizechange.ts"), "--out", str(out)) in (0, 3)
    header, records = records_of(out)
    assert (header["width"], header["height"]) == (320, 240)
    assert len(records) == 60
    assert all("width" not in record for record in records[:30])
    assert all((record["width"], record["height"]) == (640, 360) for record in records[30:])
    assert records[30]["keyframe"]
    assert records[30]["recomputed"] == 1


@pytest.mark.parametrize("name", ["fs.mp4", "base.mkv"])
def test_a_truncated_file_gives_what_it_holds(
    name: str, cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "tokens.jsonl"
    assert run(str(cases / f"B3_truncated{name[-4:]}"), "--out", str(out)) == 3
    assert 30 <= len(records_of(out)[1]) <= 36
    assert "damaged" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("missing.mp4", "no such"),
        ("B1_zero.mp4", "empty"),
        ("B1_text.mp4", ""),
        ("B1_dir.mp4", "a folder without a video"),
        ("B1_nomoov.mp4", ""),
        ("B2_audio.m4a", "no video stream"),
        ("B5_cover.mp3", "no video stream"),
    ],
)
def test_what_is_no_video_is_one_line(name: str, reason: str, cases: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(str(cases / name)) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert str(cases / name) in err
    assert reason in err.lower()
    assert "hello" not in err


def test_an_avi_that_was_written_to_a_pipe_is_whole(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray((cases / "base.avi").read_bytes())
    length = data.find(b"strh") + 8 + 32
    data[4:8], data[length : length + 4] = b"\xff" * 4, (0x40000000).to_bytes(4, "little")
    (tmp_path / "pipe.avi").write_bytes(data)
    assert run(str(tmp_path / "pipe.avi"), "--out", str(tmp_path / "tokens.jsonl")) == 0
    assert len(records_of(tmp_path / "tokens.jsonl")[1]) == 60
    assert "damaged" not in capsys.readouterr().err


@pytest.mark.parametrize("container", ["mkv", "mp4"])
def test_a_still_clip_with_a_picture_every_12_seconds_is_sent_once(container: str, tmp_path: Path) -> None:
    path, out = tmp_path / f"still.{container}", tmp_path / "tokens.jsonl"
    picture = ["-f", "lavfi", "-i", "color=navy:s=128x96:r=25"]
    ffmpeg(*picture, "-frames:v", 8, "-vf", "setpts=N*12/TB", "-vsync", "vfr", "-c:v", "libx264", "-bf", 0, path)
    assert run(str(path), "--memory", "stream", "--out", str(out)) == 0
    records = records_of(out)[1]
    assert [record["time"] for record in records] == pytest.approx([12.0 * n for n in range(8)])
    assert not any(record.get("keyframe_reason") == "discontinuity" for record in records)
    assert records[0]["x"]
    assert not any(record["x"] for record in records[2:])


def test_another_video_stream_can_be_picked(cases: Path, tmp_path: Path) -> None:
    out = tmp_path / "tokens.jsonl"
    assert run(str(cases / "B6_two.mkv"), "--stream", "0", "--out", str(out)) == 0
    header, records = records_of(out)
    assert (len(records), header["width"]) == (10, 64)
    assert run(str(cases / "B6_two.mkv"), "--stream", "7", "--out", str(out)) == 1


def picture(path: Path) -> np.ndarray:
    """The first frame of a 64x64 clip, put together from its 16 tokens of LOD 0: uint8[64, 64, 3]."""
    settings = {"strategy": "three_stage"}
    with open_stream(str(path), patches=True, budget=16, allocation=settings) as stream:
        selection = next(stream)
    whole = np.zeros((64, 64, 3), np.uint8)
    for x, y, patch in zip(selection.x, selection.y, selection.patches, strict=True):
        whole[y - 8 : y + 8, x - 8 : x + 8] = patch
    return whole


@pytest.mark.parametrize("matrix", ["bt709", "bt601", "bt2020"])
@pytest.mark.parametrize("range_", ["tv", "pc"])
def test_matrix_and_range_are_honoured(matrix: str, range_: str, cases: Path) -> None:
    whole = picture(cases / f"C1_{matrix}_{range_}.mp4").astype(int)
    left, right = whole[:, :28], whole[:, 36:]
    assert np.abs(left - 64).max() <= 4
    assert right[..., 0].min() >= 250
    assert right[..., 1:].max() <= 4


def test_grey_has_equal_red_green_and_blue(cases: Path) -> None:
    with open_stream(str(cases / "C3_gray.mkv"), patches=True, source={"frames": 1}) as stream:
        patches = next(stream).patches
    assert (patches[..., 0] == patches[..., 1]).all()
    assert (patches[..., 0] == patches[..., 2]).all()
    assert patches.max() > 200


def test_a_rotated_picture_stands_upright(cases: Path) -> None:
    with open_stream(str(cases / "G1_rot90.mp4"), patches=True, source={"frames": 1}) as stream:
        selection = next(stream)
    colours = selection.patches.mean(axis=(1, 2))
    upper, lower = colours[selection.y < 100], colours[selection.y > 220]
    assert (upper[:, 2] > 200).all()
    assert (upper[:, 0] < 60).all()
    assert (lower[:, 0] > 200).all()
    assert (lower[:, 2] < 60).all()
