"""Outputs that are set aside by size or age."""

import json
import resource
import signal
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pyarrow.parquet
import pytest

from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import Frame
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks import format_of, open_overlay, open_sink, rotated_files
from foveate.pipeline.sinks.json_lines import FORMAT as LINES
from foveate.pipeline.sinks.json_lines import JsonLinesSink
from foveate.pipeline.sinks.overlay.layout import layout_for
from foveate.pipeline.sinks.rotation import RotatingSink, Rotation
from foveate.pipeline.sinks.shard_files import read_shards

NEVER = Rotation()
HEADER = Header("rtsp://camera", 16, 16, 25.0, {})
FRAME = Frame(0, 0.0, np.zeros((16, 16), np.uint8), None)


def selection(index: int) -> Selection:
    none, part = np.zeros(0, np.int32), np.zeros(0, np.float32)
    lod, fresh = np.zeros(0, np.uint8), np.zeros(0, bool)
    return Selection(index, index / 25, 16, 16, None, 0.0, 0.0, none, none, lod, part, part, part, None, none, fresh)


def write(path: Path, indices: range, rotation: Rotation = NEVER) -> None:
    sink = open_sink(str(path), rotation)
    sink.open(HEADER)
    for index in indices:
        sink.write(FRAME, selection(index))
    sink.close()


def fill(sink: RotatingSink, count: int) -> None:
    for index in range(count):
        sink.write(FRAME, selection(index))


def indices(path: Path) -> list[int]:
    """Every file must begin with a header and hold whole lines only."""
    header, *records = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert header["source"] == "rtsp://camera"
    assert path.read_bytes().endswith(b"\n")
    return [record["index"] for record in records]


def test_by_size_every_file_ends_behind_the_line_that_fills_it(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    write(path, range(1))
    full = path.stat().st_size  # a header and one record fill a file
    path.unlink()
    write(path, range(4), Rotation(size=full))
    names = sorted(entry.name for entry in tmp_path.iterdir())
    assert names == ["tokens-000001.jsonl", "tokens-000002.jsonl", "tokens-000003.jsonl", "tokens.jsonl"]
    assert [indices(tmp_path / name) for name in names] == [[0], [1], [2], [3]]


def test_by_age(tmp_path: Path) -> None:
    now = 0.0
    path = tmp_path / "tokens.jsonl"
    sink = RotatingSink(str(path), Rotation(seconds=10.0), LINES, lambda: now)
    sink.open(HEADER)
    for index in range(6):  # one every 4 s: a file holds those at 0, 4 and 8 s
        sink.write(FRAME, selection(index))
        now += 4.0
    sink.close()
    assert indices(tmp_path / "tokens-000001.jsonl") == [0, 1, 2]
    assert indices(path) == [3, 4, 5]


def test_a_restart_loses_nothing_and_cuts_a_half_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    write(path, range(3))
    with path.open("ab") as file:
        file.write(b'{"index":3,"ti')
    write(path, range(2))
    write(path, range(1))
    assert indices(tmp_path / "tokens-000001.jsonl") == [0, 1, 2]
    assert indices(tmp_path / "tokens-000002.jsonl") == [0, 1]
    assert indices(path) == [0]


@pytest.mark.parametrize("left", [b"", b'{"foveate":', b'{"foveate":"0.1.0"}\n'])
def test_a_file_without_a_record_is_written_over(left: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    path.write_bytes(left)
    write(path, range(2))
    assert [entry.name for entry in tmp_path.iterdir()] == ["tokens.jsonl"]
    assert indices(path) == [0, 1]


@pytest.mark.parametrize("rotation", [NEVER, Rotation(size=1)])
def test_a_file_that_another_program_writes_is_left_alone(rotation: Rotation, tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    first = RotatingSink(str(path), Rotation(seconds=3600.0), LINES)
    first.open(HEADER)
    first.write(FRAME, selection(0))
    for second in (RotatingSink(str(path), rotation, LINES), JsonLinesSink(str(path))):
        with pytest.raises(SinkError, match="another program is writing it"):
            second.open(HEADER)
    first.write(FRAME, selection(1))
    first.close()
    assert indices(path) == [0, 1]
    write(path, range(1), rotation)
    assert indices(tmp_path / "tokens-000001.jsonl") == [0, 1]


def test_a_full_disk_ends_behind_the_last_whole_line(tmp_path: Path) -> None:
    """The limit on a file's size stands for the disk: both take a part of a line, and then nothing."""
    path = tmp_path / "tokens.jsonl"
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sink = RotatingSink(str(path), NEVER, LINES)
    sink.open(HEADER)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1000, before[1]))
        with pytest.raises(SinkError, match="cannot write"):
            fill(sink, 100)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    sink.close()
    whole = indices(path)
    assert whole == list(range(len(whole)))
    assert len(whole) >= 1


def test_a_half_line_longer_than_a_block_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    write(path, range(3))
    with path.open("ab") as file:
        file.write(b"x" * 200_000)
    write(path, range(1))
    assert indices(tmp_path / "tokens-000001.jsonl") == [0, 1, 2]


def test_more_than_a_million_files(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    (tmp_path / "tokens-999999.jsonl").write_text("an old one")
    write(path, range(3), Rotation(size=1, keep=2))
    assert [indices(tmp_path / f"tokens-{number}.jsonl") for number in (1_000_000, 1_000_001)] == [[0], [1]]
    assert not (tmp_path / "tokens-999999.jsonl").exists()


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.jsonl"
    for stranger in ("tokens-mine.jsonl", "tokens-20261128.jsonl", "tokens-00000001.jsonl"):
        (tmp_path / stranger).write_text("keep me")
    write(path, range(5), Rotation(size=1, keep=2))
    assert indices(tmp_path / "tokens-000003.jsonl") == [2]
    assert indices(tmp_path / "tokens-000004.jsonl") == [3]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "tokens-00000001.jsonl",
        "tokens-000003.jsonl",
        "tokens-000004.jsonl",
        "tokens-20261128.jsonl",
        "tokens-mine.jsonl",
        "tokens.jsonl",
    ]


def with_patches(index: int) -> Selection:
    return replace(selection(index), patches=np.zeros((0, 16, 16, 3), np.uint8))


def frames_in(path: Path) -> list[int]:
    """The indices of the frames in a file of any kind, which must be whole."""
    if path.suffix == ".parquet":
        return list(pyarrow.parquet.read_table(path)["index"].to_pylist())
    if path.suffix == ".jsonl":
        return indices(path)
    ((header, arrays),) = list(read_shards(path))
    assert header["source"] == "rtsp://camera"
    return list(arrays["frame_index"])


@pytest.fixture(params=["jsonl", "parquet", "npz", "safetensors"])
def output(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"tokens.{request.param}"


def test_every_kind_of_file_is_set_aside_whole(output: Path) -> None:
    now = 0.0
    sink = RotatingSink(str(output), Rotation(seconds=10.0), format_of(str(output)), lambda: now)
    sink.open(HEADER)
    for index in range(7):  # one every 4 s: a file holds those at 0, 4 and 8 s
        sink.write(FRAME, with_patches(index))
        now += 4.0
        if index == 4:  # as kill -9 here would leave them
            assert frames_in(output.with_stem("tokens-000001")) == [0, 1, 2]
    sink.close()
    assert [path.stem for path in rotated_files(output)] == ["tokens-000001", "tokens-000002", "tokens"]
    assert [frames_in(path) for path in rotated_files(output)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_a_restart_loses_no_file_of_any_kind(output: Path) -> None:
    for begin in (0, 10, 20):
        sink = open_sink(str(output), NEVER)
        sink.open(HEADER)
        sink.write(FRAME, with_patches(begin))
        sink.write(FRAME, with_patches(begin + 1))
        sink.close()
    assert [frames_in(path) for path in rotated_files(output)] == [[0, 1], [10, 11], [20, 21]]


def test_parquet_without_a_wish_is_set_aside_each_hour(tmp_path: Path) -> None:
    """Else its end, without which it cannot be read, would never be written."""
    now, path = 0.0, tmp_path / "tokens.parquet"
    sink = RotatingSink(str(path), NEVER, format_of(str(path)), lambda: now)
    sink.open(HEADER)
    for index in range(121):  # minutes
        sink.write(FRAME, selection(index))
        now += 60.0
    sink.close()
    assert [len(frames_in(each)) for each in rotated_files(path)] == [60, 60, 1]


def test_parquet_by_size(tmp_path: Path) -> None:
    """A row group of 256 frames is the least that is written."""
    path = tmp_path / "tokens.parquet"
    write(path, range(600), Rotation(size=1000, keep=1))
    assert [frames_in(each) for each in rotated_files(path)] == [list(range(256, 512)), list(range(512, 600))]


def test_shards_whose_maps_grow_and_shards_that_are_full(tmp_path: Path) -> None:
    path = tmp_path / "tokens.npz"
    sink = open_sink(str(path), Rotation(size=3 * 2048))
    sink.open(HEADER)
    for index in range(5):  # each takes 2048 bytes, and a map of 1x1 or 2x1
        maps = {"score": np.zeros((1 if index < 2 else 2, 1), np.float32)}
        sink.write(FRAME, replace(with_patches(index), maps=maps))
    sink.close()
    assert [frames_in(each) for each in rotated_files(path)] == [[0, 1], [2, 3, 4]]


def test_an_output_that_is_a_link_is_set_aside_where_it_leads(output: Path) -> None:
    (output.parent / "disk").mkdir()
    place = output.parent / "disk" / output.name
    output.symlink_to(place)
    for index in range(2):
        sink = open_sink(str(output), NEVER)
        sink.open(HEADER)
        sink.write(FRAME, with_patches(index))
        sink.close()
    assert output.is_symlink()
    assert [frames_in(path) for path in rotated_files(place)] == [[0], [1]]


def test_overlays_are_set_aside_and_each_begins_at_0(tmp_path: Path) -> None:
    path, heat = tmp_path / "seen.mp4", {"score": np.zeros((1, 1), np.float32)}
    for begin in (0, 100):
        sink = open_overlay(str(path), NEVER)
        sink.open(HEADER)
        for index in range(begin, begin + 3):
            sink.write(FRAME, replace(with_patches(index), maps=heat))
        sink.close()
    for each in rotated_files(path):
        with av.open(str(each)) as video:
            assert [frame.time for frame in video.decode(video=0)] == pytest.approx([0.0, 0.04, 0.08], abs=1e-3)
    assert len(rotated_files(path)) == 2


def test_an_overlay_set_aside_goes_on_with_what_the_model_has_seen(tmp_path: Path) -> None:
    """One white token in the first file, none in the second: with stream memory the model still sees white."""
    path, heat = tmp_path / "seen.mp4", {"score": np.zeros((1, 1), np.float32)}
    sink = open_overlay(str(path), Rotation(size=1))
    sink.open(Header("rtsp://camera", 16, 16, 25.0, {"allocation": {"memory": "stream"}}))
    place, part = np.full(1, 8, np.int32), np.ones(1, np.float32)
    lod, fresh, white = np.zeros(1, np.uint8), np.ones(1, bool), np.full((1, 16, 16, 3), 255, np.uint8)
    one = Selection(0, 0.0, 16, 16, "first", 1.0, 1.0, place, place, lod, part, part, part, None, place, fresh, white)
    for each in (one, with_patches(1)):
        sink.write(FRAME, replace(each, maps=heat))
    sink.close()
    box = layout_for(16, 16).reader.box.slices
    for each in rotated_files(path):
        with av.open(str(each)) as video:
            (frame,) = video.decode(video=0)
            assert np.median(frame.to_ndarray(format="gray")[box]) > 240
    assert len(rotated_files(path)) == 2
