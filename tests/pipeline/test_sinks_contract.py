"""One contract for every Sink: header, no frames, some frames, frames without tokens, errors, same bytes again."""

import base64
import errno
import io
import json
import re
import resource
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import av
import numpy as np
import pyarrow.parquet
import pytest
from safetensors import safe_open

from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.frames import Frame
from foveate.pipeline.selection import Header, Selection
from foveate.pipeline.sinks import open_overlay, open_report, open_sink
from foveate.pipeline.sinks.base import Sink

WIDTH, HEIGHT = 96, 64
HEADER = Header("clip.mp4", WIDTH, HEIGHT, 25.0, {"budget": 7}, start=100.0, notes=("interlaced",))


class Read(NamedTuple):
    """What a file holds, read without the code under test."""

    header: dict[str, object] | None  # None where the format has none
    tokens: list[int]  # per frame; empty for videos, which hold frames only
    frames: int


def read_jsonl(path: Path) -> Read:
    """Standard library only."""
    header, *records = [json.loads(line) for line in path.read_text().splitlines()]
    return Read(header, [len(record["x"]) for record in records], len(records))


def read_npz(path: Path) -> Read:
    """NumPy only."""
    with np.load(path) as arrays:
        counts = np.diff(arrays["offsets"]).tolist()
        assert arrays["patches"].shape == (sum(counts), 16, 16, 3)
        return Read(json.loads(str(arrays["header"])), counts, len(arrays["frame_index"]))


def read_safetensors(path: Path) -> Read:
    """The safetensors library only."""
    with safe_open(path, framework="np") as file:
        counts = np.diff(file.get_tensor("offsets")).tolist()
        assert file.get_tensor("patches").shape == (sum(counts), 16, 16, 3)
        return Read(json.loads(file.metadata()["foveate"]), counts, len(file.get_tensor("frame_index")))


def read_parquet(path: Path) -> Read:
    """pyarrow only."""
    table = pyarrow.parquet.read_table(path)
    rows = table.column("x").to_pylist()
    return Read(json.loads(table.schema.metadata[b"foveate"]), [len(row) for row in rows], len(rows))


def read_recording(path: Path) -> Read:
    """rerun only; each frame has a packet of video beside its boxes."""
    from rerun.chunk import RrdReader

    header, counts, packets = {}, [], 0
    for chunk in RrdReader(path).stream().to_chunks():
        batch = chunk.to_record_batch()
        if chunk.entity_path == "/header":
            header = json.loads(batch.column("TextDocument:text")[0].as_py()[0])
        elif chunk.entity_path == "/video/tokens":
            counts += [len(boxes) for boxes in batch.column("Boxes2D:centers").to_pylist()]
        elif "VideoStream:sample" in batch.schema.names:
            packets += batch.num_rows
    assert packets == len(counts)
    return Read(header, counts, len(counts))


def read_video(path: Path) -> Read:
    """PyAV only."""
    with av.open(str(path)) as container:
        return Read(None, [], sum(1 for _ in container.decode(video=0)))


def read_report(path: Path) -> Read:
    """The video in the page, as a browser would find it."""
    found = re.search(r'src="data:video/mp4;base64,([^"]*)"', path.read_text())
    if found is None:
        return Read(None, [], 0)
    with av.open(io.BytesIO(base64.b64decode(found[1], validate=True))) as container:
        return Read(None, [], sum(1 for _ in container.decode(video=0)))


KINDS: dict[str, tuple[Callable[[str], Sink], Callable[[Path], Read]]] = {
    "a.jsonl": (open_sink, read_jsonl),
    "a.NDJSON": (open_sink, read_jsonl),
    "a.npz": (open_sink, read_npz),
    "a.safetensors": (open_sink, read_safetensors),
    "a.parquet": (open_sink, read_parquet),
    "a.mp4": (open_overlay, read_video),
    "a.mkv": (open_overlay, read_video),
    "a.mov": (open_overlay, read_video),
    "a.html": (open_report, read_report),
}
if find_spec("rerun") is not None:
    KINDS["a.rrd"] = (open_sink, read_recording)


def stream(counts: list[int]) -> Iterator[tuple[Frame, Selection]]:
    """One frame and its selection per entry, with that many tokens."""
    for index, count in enumerate(counts):
        rng = np.random.default_rng(index)
        luma = rng.integers(16, 236, (HEIGHT, WIDTH), np.uint8)
        scores = rng.random((3, count), np.float32)
        selection = Selection(
            index=index,
            time=index / 25,
            width=WIDTH,
            height=HEIGHT,
            keyframe="first" if index == 0 else None,
            changed=0.25,
            recomputed=0.5,
            x=rng.integers(0, WIDTH, count).astype(np.int32),
            y=rng.integers(0, HEIGHT, count).astype(np.int32),
            lod=rng.integers(0, 5, count).astype(np.uint8),
            score=scores[0],
            information=scores[1],
            perspective=scores[2],
            participation=None,
            age=rng.integers(0, 9, count).astype(np.int32),
            fresh=rng.random(count) < 0.5,
            patches=rng.integers(0, 256, (count, 16, 16, 3), np.uint8),
            maps={"score": rng.random((4, 6), np.float32)},
        )
        yield Frame(index, index / 25, luma, None), selection


def run(name: str, directory: Path, counts: list[int], header: Header = HEADER) -> Path:
    """Write a stream to a Sink of the named kind; the file's path."""
    path = directory / name
    sink = KINDS[name][0](str(path))
    try:
        sink.open(header)
        for frame, selection in stream(counts):
            sink.write(frame, selection)
    finally:
        sink.close()
    return path


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("counts", [[], [5], [7, 0, 3, 7], [0], [1] * 40], ids=len)
def test_what_is_written_is_read(name: str, counts: list[int], tmp_path: Path) -> None:
    path = run(name, tmp_path, counts)
    assert [each.name for each in tmp_path.iterdir()] == [name]  # and no temporary file
    if KINDS[name][0] is open_overlay and not counts:
        return  # a video without pictures need not be playable
    read = KINDS[name][1](path)
    assert read.frames == len(counts)
    if read.header is None:
        return
    assert read.tokens == counts
    assert read.header["foveate"] == "0.1.0"
    assert [read.header[key] for key in ("source", "width", "height", "fps", "start")] == [
        "clip.mp4",
        WIDTH,
        HEIGHT,
        25.0,
        100.0,
    ]
    assert read.header["config"] == {"budget": 7}
    assert read.header["notes"] == ["interlaced"]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "a.rrd"])  # whose rows have unique ids
def test_same_bytes_again(name: str, tmp_path: Path) -> None:
    for directory in (tmp_path / "1", tmp_path / "2"):
        directory.mkdir()
        run(name, directory, [7, 0, 3] * 10)
    assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.mark.parametrize("name", KINDS)
def test_a_longer_file_of_an_earlier_run_is_replaced(name: str, tmp_path: Path) -> None:
    run(name, tmp_path, [7] * 20)
    assert KINDS[name][1](run(name, tmp_path, [2, 2])).frames == 2


@pytest.mark.parametrize("name", KINDS)
def test_places_that_cannot_be_written(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory" / name).mkdir(parents=True)
    for place, reason in {
        tmp_path / "absent" / name: "its directory does not exist",
        tmp_path / "directory" / name: "it is a directory",
        tmp_path / "file" / name: "not a directory",
        tmp_path / (300 * "n" + name): "the name is too long",
    }.items():
        sink = KINDS[name][0](str(place))
        with pytest.raises(SinkError, match=reason) as caught:
            sink.open(HEADER)
        sink.close()
        assert str(place) in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", KINDS)
def test_the_source_is_never_overwritten(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(b"precious")
    (tmp_path / "link").symlink_to(path)
    sink = KINDS[name][0](str(path))
    with pytest.raises(SinkError, match="it is the source itself"):
        sink.open(Header(str(tmp_path / "link"), WIDTH, HEIGHT, None, {}))
    sink.close()
    assert path.read_bytes() == b"precious"


@pytest.mark.parametrize("name", KINDS)
def test_no_file_of_a_numbered_source_is_overwritten(name: str, tmp_path: Path) -> None:
    stem, suffix = name.split(".")
    for number in (1, 3):
        (tmp_path / f"{stem}{number}.{suffix}").write_bytes(b"precious")
    sink = KINDS[name][0](str(tmp_path / f"{stem}3.{suffix}"))
    with pytest.raises(SinkError, match="it is the source itself"):
        sink.open(Header(str(tmp_path / f"{stem}%d.{suffix}"), WIDTH, HEIGHT, None, {}))
    sink.close()
    assert (tmp_path / f"{stem}3.{suffix}").read_bytes() == b"precious"


@pytest.mark.parametrize("name", KINDS)
def test_closed_after_an_error_elsewhere_the_frames_so_far_are_there(name: str, tmp_path: Path) -> None:
    sink = KINDS[name][0](str(tmp_path / name))
    sink.open(HEADER)
    for frame, selection in stream([4, 4, 4]):
        sink.write(frame, selection)
    try:
        raise RuntimeError("elsewhere")
    except RuntimeError:
        sink.close()
    assert KINDS[name][1](tmp_path / name).frames == 3


@pytest.mark.parametrize("name", KINDS)
def test_closed_without_being_opened(name: str, tmp_path: Path) -> None:
    KINDS[name][0](str(tmp_path / name)).close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["ü 日本 #1%d.jsonl", "-x.npz", "a:b.mp4", "a b.parquet", "%03d.mkv"])
def test_names_that_mean_something_elsewhere(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    opener = open_overlay if path.suffix in (".mp4", ".mkv") else open_sink
    sink = opener(str(path))
    sink.open(HEADER)
    for frame, selection in stream([2]):
        sink.write(frame, selection)
    sink.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_relative_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, (opener, _) in KINDS.items():
        sink = opener(name)
        sink.open(HEADER)
        sink.close()
    assert {each.name for each in tmp_path.iterdir()} == set(KINDS)


@pytest.mark.parametrize("name", ["a.jsonl", "a.mp4", "a.mkv"])  # the others write beside the name and rename
def test_a_full_disk_is_one_line(name: str, tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.is_char_device():
        pytest.skip("needs the device that is always full")
    path = tmp_path / name
    path.symlink_to(full)
    sink = KINDS[name][0](str(path))

    def everything() -> None:
        try:
            sink.open(HEADER)
            for frame, selection in stream([7] * 100):
                sink.write(frame, selection)
        finally:
            sink.close()

    with pytest.raises(SinkError, match="the disk is full") as caught:
        everything()
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC


@pytest.mark.parametrize("name", KINDS)
def test_a_write_that_fails_half_way_is_one_line(name: str, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, hard))  # bytes; Python ignores the signal that comes with it
    try:
        with pytest.raises(SinkError) as caught:
            run(name, tmp_path, [7] * 300)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(caught.value) == f"cannot write {tmp_path / name}: File too large"
    if name == "a.jsonl":
        assert read_jsonl(tmp_path / name).frames >= 1  # whole lines only
    if name in ("a.npz", "a.safetensors", "a.parquet", "a.rrd"):
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("opener", [open_sink, open_overlay])
@pytest.mark.parametrize("name", ["a.csv", "a", ".jsonl", "a.json", ""])
def test_unknown_suffixes_name_the_possible_ones(opener: Callable[[str], Sink], name: str) -> None:
    expected = ".jsonl, .ndjson, .npz" if opener is open_sink else ".mp4, .mkv, .mov"
    with pytest.raises(SettingsError, match=expected):
        opener(name)


def test_what_each_needs() -> None:
    needs = {name: (opener(name).needs_patches, opener(name).needs_heat) for name, (opener, _) in KINDS.items()}
    assert needs["a.jsonl"] == needs["a.parquet"] == (False, False)
    assert needs["a.npz"] == needs["a.safetensors"] == (True, False)
    assert needs["a.mp4"] == needs["a.html"] == (True, True)
