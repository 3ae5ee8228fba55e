"""Recordings for the Rerun viewer, read back with rerun: the video's packets, boxes, score, figures, timelines."""

import io
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from foveate.pipeline.errors import SinkError
from foveate.pipeline.selection import Header
from foveate.pipeline.sinks import Rotation, open_sink, rotated_files
from foveate.pipeline.stream import open_stream

ROOT = Path(__file__).parents[2]
PEDESTRIANS = ROOT / "sample_videos" / "pedestrians.mp4"


def columns(path: Path) -> dict[str, dict[str, list[Any]]]:
    """The rows of each entity, by component and timeline; those that are not on a timeline under ``static``."""
    from rerun.chunk import RrdReader

    found: dict[str, dict[str, list[Any]]] = {}
    for chunk in RrdReader(path).stream().to_chunks():
        place = found.setdefault(f"{'static ' if chunk.is_static else ''}{chunk.entity_path}", {})
        batch = chunk.to_record_batch()
        for name in batch.schema.names:
            column = batch.column(name)
            if name in ("time", "captured"):  # ns
                column = column.cast("int64")
            place.setdefault(name, []).extend(column.to_pylist())
    return found


def verified(path: Path) -> bool:
    """Whether rerun's own command finds no error in a file."""
    command = [sys.executable, "-m", "rerun", "rrd", "verify", str(path)]
    return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0


def packets(source: Any) -> list[tuple[int, bytes]]:
    """The packets of a video in the order of decoding, with their times in microseconds after the first picture."""
    with av.open(source) as container:
        found = [
            (round(1e6 * float(packet.pts * packet.time_base)), bytes(packet))
            for packet in container.demux(video=0)
            if packet.pts is not None
        ]
    first = min(time for time, _ in found)
    return [(time - first, data) for time, data in found]


@pytest.fixture(scope="module", autouse=True)
def _rerun() -> None:
    pytest.importorskip("rerun")


def test_a_file_goes_in_with_its_packets_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.rrd"
    with open_stream(str(PEDESTRIANS), sinks=[open_sink(str(path))]) as stream:
        selections = list(stream)
    assert verified(path)
    found = columns(path)
    video = bytes(found["static /video"]["AssetVideo:blob"][0][0])
    assert packets(io.BytesIO(video)) == packets(str(PEDESTRIANS))
    beside = path.stat().st_size - len(video)
    assert 1000 <= beside / len(selections) <= 4000
    shown = found["/video"]
    assert shown["frame"] == list(range(300))
    assert shown["time"] == pytest.approx([index * 1e8 for index in range(300)], abs=1)
    references = [row[0] for row in shown["VideoFrameReference:timestamp"]]  # ns
    assert [after - before for before, after in pairwise(references)] == [100_000_000] * 299


def test_boxes_lie_inside_the_picture_and_cover_it(tmp_path: Path) -> None:
    """With frame memory the squares cover the picture once; 768x576 is no multiple of the largest ones."""
    path = tmp_path / "a.rrd"
    with open_stream(str(PEDESTRIANS), sinks=[open_sink(str(path))], source={"frames": 2}) as stream:
        selections = list(stream)
    boxes = columns(path)["/video/tokens"]
    for row, selection in enumerate(selections):
        centres, halves = (np.array(boxes[f"Boxes2D:{name}"][row]) for name in ("centers", "half_sizes"))
        assert len(centres) == len(selection)
        assert (centres - halves >= 0).all()
        assert (centres + halves <= (768, 576)).all()
        assert (4 * halves.prod(1)).sum() == 768 * 576
        assert boxes["Boxes2D:class_ids"][row] == selection.lod.tolist()


def test_score_and_figures(tmp_path: Path) -> None:
    path = tmp_path / "a.rrd"
    with open_stream(str(PEDESTRIANS), sinks=[open_sink(str(path))], source={"frames": 5}) as stream:
        selections = list(stream)
    found = columns(path)
    figures = {name: found[f"/figures/{name}"]["Scalars:scalars"] for name in ("count/tokens", "share/changed")}
    assert figures["count/tokens"] == [[len(each)] for each in selections]
    assert figures["share/changed"] == [[each.changed] for each in selections]
    for row, selection in enumerate(selections):
        with av.open(io.BytesIO(bytes(found["/score"]["EncodedImage:blob"][row][0]))) as image:
            pixels = next(image.decode(video=0)).to_ndarray(format="rgb24")
        assert pixels.shape == (36, 48, 3)
        light = pixels.sum(2, dtype=int)
        score = selection.maps["score"]
        assert light[score > 0.9 * score.max()].min() > light[score < 0.2 * score.max()].max()


def test_a_part_of_a_file_holds_no_more_of_the_video_than_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "a.rrd"
    part = {"start": "12", "end": "14"}
    with open_stream(str(PEDESTRIANS), sinks=[open_sink(str(path))], source=part) as stream:
        indices = [selection.index for selection in stream]
    found = columns(path)
    video = bytes(found["static /video"]["AssetVideo:blob"][0][0])
    copied, whole = packets(io.BytesIO(video)), packets(str(PEDESTRIANS))
    assert len(copied) < len(whole) / 2
    references = [row[0] for row in found["/video"]["VideoFrameReference:timestamp"]]
    assert found["/video"]["frame"] == indices == list(range(120, 140))
    times = {data: time for time, data in whole}
    with av.open(io.BytesIO(video)) as container:  # each reference leads to the packet that has the frame's time
        by_time = {
            round(1e6 * float(each.pts * each.time_base)): bytes(each) for each in container.demux(0) if each.size
        }
    for index, reference in zip(indices, references, strict=True):
        nearest = min(by_time, key=lambda time: abs(time - reference / 1000))
        assert times[by_time[nearest]] == 100_000 * index


def test_other_pictures_are_encoded_one_packet_at_each_frame(tmp_path: Path) -> None:
    path = tmp_path / "a.rrd"
    pictures = [np.full((35, 51, 3), 20 * index, np.uint8) for index in range(8)]
    with open_stream(pictures, fps=4.0, sinks=[open_sink(str(path))]) as stream:
        assert len(list(stream)) == 8
    assert verified(path)
    video = columns(path)["/video"]
    assert video["frame"] == list(range(8))
    assert video["VideoStream:is_keyframe"][0] == [True]
    decoder = av.CodecContext.create("h264", "r")
    shown = []
    for sample in video["VideoStream:sample"]:
        shown += decoder.decode(av.Packet(bytes(sample[0])))
    shown += decoder.decode(None)
    assert [(frame.width, frame.height) for frame in shown] == [(52, 36)] * 8
    means = [frame.to_ndarray(format="rgb24").mean() for frame in shown]
    assert means == pytest.approx([20 * index for index in range(8)], abs=3)  # of lossy coding


def test_a_camera_whose_server_restarts(rtsp: Any, tmp_path: Path) -> None:
    """One recording over both connections: a packet, boxes and a time of capture for each frame; it can be played."""
    server, address = rtsp()
    path = tmp_path / "a.rrd"
    limits = {"connect_timeout": 8.0, "stall_timeout": 3.0}
    indices, again = [], 0
    with open_stream(address, sinks=[open_sink(str(path))], budget=40, live=limits) as stream:
        for selection in stream:
            indices.append(selection.index)
            if len(indices) == 10:
                server.kill()
                server.start()
            again += stream.status is not None and stream.status.connections == 2
            if again == 10:
                break
    assert verified(path)
    found = columns(path)
    video = found["/video"]
    assert video["frame"][: len(indices)] == found["/video/tokens"]["frame"][: len(indices)] == indices
    captured = video["captured"]
    assert all(before < after for before, after in pairwise(captured))
    decoder = av.CodecContext.create("h264", "r")
    shown = [frame for sample in video["VideoStream:sample"] for frame in decoder.decode(av.Packet(bytes(sample[0])))]
    assert len(shown) == len(video["frame"])
    assert {(frame.width, frame.height) for frame in shown} == {(320, 240)}


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))
from foveate.pipeline import open_stream
from foveate.pipeline.errors import SinkError
from foveate.pipeline.sinks import open_sink
try:
    with open_stream(sys.argv[1], sinks=[open_sink(sys.argv[2])], source={"frames": int(sys.argv[3])}) as stream:
        list(stream)
except SinkError as error:
    print(error, flush=True)
os._exit(0)  # as the command does: rerun may hang at the end of the interpreter
"""


@pytest.mark.parametrize("frames", [60, 300])
def test_a_file_that_cannot_be_written_is_one_line_and_leaves_nothing(frames: int, tmp_path: Path) -> None:
    """A limit on files stands for a full disk. It is noticed, also where rerun goes on waiting."""
    path = tmp_path / "a.rrd"
    command = [sys.executable, "-c", LIMITED, str(PEDESTRIANS), str(path), str(frames)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.startswith(f"cannot write {path}: ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_rotated_parts_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.rrd"
    pictures = [np.full((32, 48, 3), index, np.uint8) for index in range(4)]
    with open_stream(pictures, fps=30.0, sinks=[open_sink(str(path), Rotation(size=1))]) as stream:
        count = len(list(stream))
    files = rotated_files(path)
    assert len(files) == 4
    assert all(map(verified, files))
    frames = [index for file in files for index in columns(file)["/video"]["frame"]]
    assert frames == list(range(count))
    assert all(columns(file)["/video"]["VideoStream:is_keyframe"][0] == [True] for file in files)


def test_without_the_extra_it_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.pipeline.sinks.recording.sink.find_spec", lambda name: None)
    with pytest.raises(SinkError, match=r"recordings need rerun-sdk: .*\[rerun\]") as caught:
        open_sink(str(tmp_path / "a.rrd")).open(Header("clip.mp4", 96, 64, 25.0, {}))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
