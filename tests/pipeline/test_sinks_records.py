"""JSON lines, NPZ, safetensors and Parquet: every field's value, whole lines after kill -9, bounded shards."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import safetensors.numpy

from foveate.pipeline.errors import SinkError
from foveate.pipeline.frames import Frame
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks import open_sink, read_json_lines, read_shards
from foveate.pipeline.sinks.base import Sink
from foveate.pipeline.sinks.shard_files import save_npz, save_safetensors
from foveate.pipeline.sinks.shards import ShardSink

HEADER = Header("clip.mp4", 64, 48, 12.5, {"budget": 7, "query": ["größer\n'als'"]})
FRAME = Frame(0, 0.0, np.zeros((48, 64), np.uint8), None)


def selection(count: int = 2, **changes: Any) -> Selection:
    """A selection whose values are easy to recognise."""
    ramp = np.arange(count)
    plain = Selection(
        index=3,
        time=1 / 3,
        width=64,
        height=48,
        keyframe=None,
        changed=1 / 32640,  # one tile of 8K
        recomputed=2 / 3,
        x=(8 + 16 * ramp).astype(np.int32),
        y=np.full(count, 24, np.int32),
        lod=(ramp % 5).astype(np.uint8),
        score=np.full(count, 0.1, np.float32),
        information=np.full(count, 1 / 3, np.float32),
        perspective=np.ones(count, np.float32),
        participation=None,
        age=(10 + ramp).astype(np.int32),
        fresh=ramp % 2 == 0,
        patches=np.full((count, 16, 16, 3), 7, np.uint8) + ramp.astype(np.uint8)[:, None, None, None],
    )
    return replace(plain, **changes)


def write(sink: Sink, *selections: Selection, header: Header = HEADER) -> None:
    """The whole life of a Sink."""
    sink.open(header)
    for each in selections:
        sink.write(FRAME, each)
    sink.close()


def test_a_record_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(open_sink(str(path)), selection())
    assert path.read_text().splitlines()[1] == (
        '{"index":3,"time":0.333333,"keyframe":false,"changed":0.000031,"recomputed":0.666667,"x":[8,24],"y":[24,24],'
        '"lod":[0,1],"score":[0.1,0.1],"information":[0.3333,0.3333],"perspective":[1.0,1.0],"age":[10,11],'
        '"fresh":[true,false]}'
    )


def test_the_fields_that_are_not_always_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    query = np.array([0.25, 0.75], np.float32)
    extras = {"psnr": np.float32(0.5), "note": "ü"}
    one = selection(keyframe="size", width=32, height=16, participation=query, extras=extras)
    write(open_sink(str(path)), one)
    record = json.loads(path.read_text().splitlines()[1])
    assert list(record)[:6] == ["index", "time", "width", "height", "keyframe", "keyframe_reason"]
    assert (record["width"], record["height"]) == (32, 16)
    assert (record["keyframe"], record["keyframe_reason"]) == (True, "size")
    assert record["participation"] == [0.25, 0.75]
    assert (record["psnr"], record["note"]) == (0.5, "ü")


def test_scores_have_at_most_four_decimals(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    scores = np.random.default_rng(0).random(5000).astype(np.float32)
    count = len(scores)
    write(open_sink(str(path)), selection(count, score=scores, information=scores, perspective=scores))
    line = path.read_text().splitlines()[1]
    assert max(len(digits) for digits in re.findall(r"\d\.(\d+)[,\]]", line[line.index('"score"') :])) == 4
    # Half of the last decimal, and float32's own step.
    assert np.abs(np.array(json.loads(line)["score"]) - scores).max() <= 0.5e-4 + 1e-7


def test_arrays_that_are_views(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    wide = np.arange(8, dtype=np.int32)
    some = selection(4, x=wide[::2], y=wide[::-2], age=wide[1::2], score=np.ones(8, np.float32)[::2])
    write(open_sink(str(path)), some)
    record = json.loads(path.read_text().splitlines()[1])
    assert (record["x"], record["y"], record["age"]) == ([0, 2, 4, 6], [7, 5, 3, 1], [1, 3, 5, 7])


def test_header_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(open_sink(str(path)), header=HEADER)
    header = json.loads(path.read_text())
    assert list(header) == ["foveate", "libraries", "source", "width", "height", "fps", "config", "start"]
    assert header["config"]["query"] == ["größer\n'als'"]
    write(open_sink(str(path)), header=replace(HEADER, fps=None, source="caf\udce9.mp4"))
    assert json.loads(path.read_text()) == {**header, "fps": None, "source": "caf?.mp4"}


def test_reading_back(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(open_sink(str(path)), *[selection(index=index) for index in range(3)])
    with path.open("ab") as file:
        file.write(b'{"index":3,"ti')  # as a kill would leave it
    header, records = read_json_lines(path)
    assert header["fps"] == 12.5
    assert [record["index"] for record in records] == [0, 1, 2]
    path.write_bytes(b'{"foveate"')
    with pytest.raises(ValueError, match="must begin with a whole header line, got 10 bytes"):
        read_json_lines(path)


@pytest.mark.parametrize("suffix", ["jsonl", "npz", "safetensors", "parquet"])
def test_each_reader_names_the_file_that_is_not_its_own(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write(open_sink(str(path)), selection())
    content = path.read_bytes()
    for other in {"npz", "safetensors"} - {suffix}:
        (tmp_path / f"other.{other}").write_bytes(content)
        with pytest.raises(ValueError, match=rf"other\.{other} must be a shard that Foveate wrote"):
            list(read_shards(tmp_path / f"other.{other}"))
    if suffix == "jsonl":
        path.write_bytes(content.split(b"\n", 1)[1])  # records alone
    with pytest.raises(ValueError, match=rf"a\.{suffix} must begin with"):
        read_json_lines(path)


@pytest.mark.parametrize("suffix", ["jsonl", "npz", "safetensors", "parquet"])
@pytest.mark.parametrize("there", [False, True])
def test_a_link_is_followed_and_stays(tmp_path: Path, suffix: str, there: bool) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    link, file = tmp_path / f"out.{suffix}", disk / f"far.{suffix}"
    if there:
        file.write_bytes(b"of an earlier run")
    link.symlink_to(file)
    write(
        open_sink(str(link)), selection(width=640), selection(width=320, maps={"edges": np.zeros((2, 2), np.float32)})
    )
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == sorted([disk, link])
    assert file.stat().st_size > 200
    if suffix in ("npz", "safetensors"):  # maps of another grid begin a shard
        assert [arrays["width"].tolist() for _, arrays in read_shards(link)] == [[640], [320]]
        assert len(list(disk.iterdir())) == 2


def test_a_shard_of_another_program_and_half_a_shard(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"x": np.zeros(3)}, tmp_path / "alien.safetensors")
    np.savez(tmp_path / "alien.npz", x=np.zeros(3))
    for suffix in ("npz", "safetensors"):
        path = tmp_path / f"half.{suffix}"
        write(open_sink(str(path)), selection())
        path.write_bytes(path.read_bytes()[:-200])
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match=re.escape(f"{path} must be a shard that Foveate wrote")):
            list(read_shards(path))
    with pytest.raises(FileNotFoundError):
        list(read_shards(tmp_path / "none.npz"))


SCRIPT = textwrap.dedent(
    """
    import sys
    import numpy as np
    from foveate.pipeline.selection import Header, Selection
    from foveate.pipeline.sinks import open_sink
    sink = open_sink(sys.argv[1])
    sink.open(Header("clip", 64, 48, None, {}))
    ints, floats = np.arange(273, dtype=np.int32), np.random.default_rng(0).random(273).astype(np.float32)
    for index in range(int(sys.argv[2])):
        sink.write(None, Selection(index, index / 25, 64, 48, None, 0.0, 0.0, ints, ints, ints.astype(np.uint8),
                                   floats, floats, floats, floats, ints, ints > 9))
        if index == 100:
            print("going", file=sys.stderr, flush=True)
    sink.close()
    """
)


def test_kill_9_leaves_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    command = [sys.executable, "-c", SCRIPT, str(path), "1000000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"going\n"
        process.send_signal(signal.SIGKILL)
    killed = path.read_bytes()
    *whole, _ = killed.split(b"\n")  # the system may stop a write between two pages: a last half line is no fault
    records = [json.loads(line) for line in whole]
    assert [record["index"] for record in records[1:]] == list(range(len(records) - 1))
    assert len(records) > 100
    assert list(read_json_lines(path)[1]) == records[1:]
    undisturbed = tmp_path / "b.jsonl"
    subprocess.run([sys.executable, "-c", SCRIPT, str(undisturbed), str(len(records))], check=True, capture_output=True)
    assert undisturbed.read_bytes().startswith(killed)


def test_each_record_is_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    sink = open_sink(str(path))
    sink.open(HEADER)
    for written in range(1, 4):
        sink.write(FRAME, selection())
        assert len(path.read_bytes().splitlines()) == 1 + written
    sink.close()


def test_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    print("before", end="\n")
    write(open_sink("-"), selection())
    print("after")
    lines = capfd.readouterr().out.splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 4)
    assert json.loads(lines[1])["source"] == "clip.mp4"


def test_what_libraries_print_stays_out_of_the_records(capfd: pytest.CaptureFixture[str]) -> None:
    """Some decoders print their errors to standard output, by its descriptor."""
    sink = open_sink("-")
    os.write(1, b"before\n")
    sink.open(HEADER)
    os.write(1, b"a picture is damaged\n")
    sink.write(FRAME, selection())
    sink.close()
    os.write(1, b"behind\n")
    found = capfd.readouterr()
    before, header, record, behind = found.out.splitlines()
    assert (before, behind) == ("before", "behind")
    assert json.loads(header)["width"] == 64
    assert json.loads(record)["index"] == 3
    assert found.err == "a picture is damaged\n"


def test_a_reader_that_is_gone_at_once_leaves_standard_output_as_it_was(capfd: pytest.CaptureFixture[str]) -> None:
    """What is printed afterwards goes where it would have gone."""
    reading, writing = os.pipe()
    os.close(reading)
    kept = os.dup(1)
    try:
        os.dup2(writing, 1)
        before = os.fstat(1)
        with pytest.raises(BrokenPipeError):
            open_sink("-").open(HEADER)
        assert os.path.samestat(os.fstat(1), before)
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(writing)


def test_a_reader_that_went_away() -> None:
    command = [sys.executable, "-c", SCRIPT, "-", "1000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read().splitlines()[-1].startswith(b"BrokenPipeError")


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    whole = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: whole(descriptor, bytes(data)[:10]))
    write(open_sink(str(path)), selection(), selection())
    monkeypatch.undo()
    assert [len(json.loads(line)) for line in path.read_text().splitlines()] == [8, 13, 13]


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_shards_hold_every_field(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    query = np.array([0.25], np.float32)
    chosen = [
        selection(2, keyframe="first", index=0),
        selection(0, index=1),
        selection(1, index=2, participation=query),
    ]
    write(open_sink(str(path)), *chosen)
    [(header, arrays)] = read_shards(path)
    assert (header["source"], header["shard"]) == ("clip.mp4", 0)
    expected: dict[str, tuple[str, list[float]]] = {
        "frame_index": ("int64", [0, 1, 2]),
        "time": ("float64", [1 / 3] * 3),
        "width": ("int32", [64] * 3),
        "height": ("int32", [48] * 3),
        "keyframe": ("bool", [True, False, False]),
        "changed": ("float64", [1 / 32640] * 3),
        "recomputed": ("float64", [2 / 3] * 3),
        "offsets": ("int64", [0, 2, 2, 3]),
        "x": ("int32", [8, 24, 8]),
        "y": ("int32", [24, 24, 24]),
        "lod": ("uint8", [0, 1, 0]),
        "score": ("float32", [np.float32(0.1)] * 3),
        "information": ("float32", [np.float32(1 / 3)] * 3),
        "perspective": ("float32", [1, 1, 1]),
        "participation": ("float32", [np.nan, np.nan, 0.25]),
        "age": ("int32", [10, 11, 10]),
        "fresh": ("bool", [True, False, True]),
    }
    assert arrays.keys() == {*expected, "patches"}
    for name, (kind, values) in expected.items():
        assert arrays[name].dtype == kind, name
        np.testing.assert_array_equal(arrays[name], np.array(values, kind), err_msg=name)
    assert arrays["patches"].dtype == np.uint8
    assert arrays["patches"].shape == (3, 16, 16, 3)
    assert arrays["patches"].max(axis=(1, 2, 3)).tolist() == [7, 8, 7]


@pytest.mark.parametrize("save", [save_npz, save_safetensors])
def test_long_streams_are_cut_into_whole_shards(save: Any, tmp_path: Path) -> None:
    suffix = "npz" if save is save_npz else "safetensors"
    path = tmp_path / f"out.v1.{suffix}"
    (tmp_path / f"out.v1-00009.{suffix}").touch()  # left by an earlier, longer run
    keep = tmp_path / f"out.v10-00001.{suffix}"
    keep.touch()
    sink = ShardSink(str(path), save, shard_bytes=20_000)  # a frame of 10 tokens has 7,680 bytes of patches
    sink.open(HEADER)
    for index in range(7):
        sink.write(FRAME, selection(10, index=index))
    names = {each.name for each in tmp_path.iterdir()} - {keep.name}
    assert names == {path.name, f"out.v1-00001.{suffix}"}  # what kill -9 would leave now
    sink.close()
    assert keep.exists()
    shards = list(read_shards(path))
    assert [header["shard"] for header, _ in shards] == [0, 1, 2]
    assert [arrays["frame_index"].tolist() for _, arrays in shards] == [[0, 1, 2], [3, 4, 5], [6]]
    assert all("participation" not in arrays for _, arrays in shards)


def test_frames_without_tokens_fill_shards_too(tmp_path: Path) -> None:
    sink = ShardSink(str(tmp_path / "a.npz"), save_npz, shard_bytes=100_000)
    write(sink, *[selection(0, index=index) for index in range(200)])
    shards = list(read_shards(tmp_path / "a.npz"))
    assert len(shards) > 1
    assert sum(len(arrays["frame_index"]) for _, arrays in shards) == 200


def test_shard_size_is_checked() -> None:
    with pytest.raises(ValueError, match="shard_bytes must be at least 1, got 0"):
        ShardSink("a.npz", save_npz, shard_bytes=0)


def test_parquet_rows_and_groups(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    query = np.array([0.25, 0.5], np.float32)
    first = selection(keyframe="first", index=0, participation=query)
    write(open_sink(str(path)), first, *[selection(index=index) for index in range(1, 300)])
    file = pyarrow.parquet.ParquetFile(path)
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [256, 44]
    rows = file.read().to_pylist()
    assert [row["index"] for row in rows] == list(range(300))
    assert rows[0] == {
        "index": 0,
        "time": 1 / 3,
        "width": 64,
        "height": 48,
        "keyframe": True,
        "keyframe_reason": "first",
        "changed": 1 / 32640,
        "recomputed": 2 / 3,
        "x": [8, 24],
        "y": [24, 24],
        "lod": [0, 1],
        "score": [np.float32(0.1)] * 2,
        "information": [np.float32(0.3333)] * 2,
        "perspective": [1.0, 1.0],
        "participation": [0.25, 0.5],
        "age": [10, 11],
        "fresh": [True, False],
    }
    assert (rows[1]["participation"], rows[1]["keyframe"], rows[1]["keyframe_reason"]) == (None, False, None)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SinkError, match=r"Parquet needs pyarrow: pip install .*\[parquet\]"):
        open_sink(str(tmp_path / "a.parquet")).open(HEADER)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_maps_are_kept_in_the_order_asked_for_and_shards_end_where_the_size_changes(
    suffix: str, tmp_path: Path
) -> None:
    path = tmp_path / f"a{suffix}"
    plain = [
        {"gaze": np.full((4, 4), 10.0 + at, np.float32), "edges": np.full((4, 4), at, np.float32)} for at in (1, 2)
    ]
    wide = {"gaze": np.full((4, 6), 5.0, np.float32), "edges": np.zeros((4, 6), np.float32)}
    header = replace(HEADER, config={"maps": ["gaze", "edges"]})
    write(open_sink(str(path)), *(selection(maps=maps) for maps in (*plain, wide)), header=header)
    (first, arrays), (_, others) = read_shards(path)
    assert first["config"]["maps"] == ["gaze", "edges"]
    assert arrays["maps"].shape == (2, 2, 4, 4)
    assert arrays["maps"].dtype == np.float32
    assert arrays["maps"][:, :, 0, 0].tolist() == [[11.0, 1.0], [12.0, 2.0]]
    assert others["maps"].shape == (1, 2, 4, 6)
    assert others["frame_index"].tolist() == [3]


def test_maps_count_towards_the_size_of_a_shard(tmp_path: Path) -> None:
    maps = {"gaze": np.zeros((68, 120), np.float32)}  # 32,640 bytes
    sink = ShardSink(str(tmp_path / "a.npz"), save_npz, shard_bytes=100_000)
    write(sink, *(selection(0, patches=np.empty((0, 16, 16, 3), np.uint8), maps=maps) for _ in range(6)))
    assert [len(arrays["maps"]) for _, arrays in read_shards(tmp_path / "a.npz")] == [3, 3]
