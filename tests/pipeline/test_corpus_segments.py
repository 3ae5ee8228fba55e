"""Long videos in segments: every frame is in one of them, and the bytes are the same whoever makes them."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from foveate.pipeline.corpus.jobs import Task
from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import open_stream
from tests.pipeline.corpus_cases import contents, made

INTERVAL = 8  # frames between periodic keyframes
CHANGE = {"keyframe_interval": INTERVAL}


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """7.5 s of 10 pictures a second with noise, and a cut after 3.3 s."""
    folder = tmp_path_factory.mktemp("segments")
    scenes = "testsrc2=size=160x96:rate=10:duration=3.3[a];mandelbrot=size=160x96:rate=10,trim=duration=4.2,negate[b]"
    graph = f"{scenes};[a][b]concat=n=2,noise=alls=6:allf=t:all_seed=5"
    made = ["-filter_complex", graph, "-c:v", "libx264", "-preset", "ultrafast", "-g", "20", "-pix_fmt", "yuv420p"]
    subprocess.run(["ffmpeg", "-v", "error", *made, str(folder / "clip.mp4")], check=True)
    return folder / "clip.mp4"


def settings(memory: str = "frame", **more: Any) -> Settings:
    return Settings.model_validate(
        {"engine": "cpu", "budget": 40, "change": CHANGE, "allocation": {"memory": memory}, **more}
    )


def rows(store: Path) -> list[dict[str, Any]]:
    """The rows of all segments, one after the other."""
    return [
        row for path in sorted((store / "frames").iterdir()) for row in pyarrow.parquet.read_table(path).to_pylist()
    ]


def unsplit(clip: Path, tmp_path: Path, wanted: Settings) -> list[dict[str, Any]]:
    made([clip], Task(str(tmp_path), wanted), workers=0)
    return rows(tmp_path)


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize("memory", ["frame", "stream"])
@pytest.mark.parametrize("seconds", [2.0, 0.75])
def test_every_frame_is_in_the_segment_of_its_time(clip: Path, tmp_path: Path, memory: str, seconds: float) -> None:
    made([clip], Task(str(tmp_path), settings(memory), segment=seconds), workers=0)
    found = [(row["index"], row["segment"]) for row in rows(tmp_path)]
    assert found == [(index, int((index / 10 + 1e-3) // seconds)) for index in range(75)]


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_processes_give_the_same_bytes(clip: Path, tmp_path: Path, memory: str) -> None:
    for workers in (0, 2):
        made([clip], Task(str(tmp_path / str(workers)), settings(memory), segment=2.0), workers=workers)
    assert contents(tmp_path / "0") == contents(tmp_path / "2")


def test_with_stream_memory_the_reader_begins_anew(clip: Path, tmp_path: Path) -> None:
    made([clip], Task(str(tmp_path), settings("stream"), segment=2.0), workers=0)
    found = rows(tmp_path)
    assert [row["index"] for row in found if row["keyframe_reason"] == "first"] == [0, 20, 40, 60]
    with open_stream(clip, settings("stream", source={"start": 2.0, "end": 4.0})) as stream:
        expected = [(each.index, each.x.tolist(), each.lod.tolist()) for each in stream]
    assert [(row["index"], row["x"], row["lod"]) for row in found[20:40]] == expected


@pytest.mark.parametrize(
    ("seconds", "more"), [(2.0, {}), (0.75, {}), (2.0, {"query": ["red"]}), (2.0, {"score": {"passes": 2}})]
)
def test_with_frame_memory_segments_are_those_of_the_whole(
    clip: Path, tmp_path: Path, seconds: float, more: dict[str, Any]
) -> None:
    """All but ages: these count from the frames before the segment, of which not all are read."""
    wanted = settings(**more)
    expected = unsplit(clip, tmp_path / "whole", wanted)
    assert {row["keyframe_reason"] for row in expected} == {None, "first", "periodic", "cut"}
    made([clip], Task(str(tmp_path / "parts"), wanted, segment=seconds), workers=0)
    found = rows(tmp_path / "parts")
    assert [without(row, "segment", "age") for row in found] == [without(row, "segment", "age") for row in expected]


def test_a_second_run_and_a_lost_segment(clip: Path, tmp_path: Path) -> None:
    task = Task(str(tmp_path), settings(), segment=2.0)
    progress, _ = made([clip], task, workers=0)
    assert [outcome.segments for outcome in progress.outcomes] == [4, None, None, None, None]
    before = contents(tmp_path)
    (third,) = (tmp_path / "_done").glob("*-00002.json")
    third.unlink()
    progress, _ = made([clip], task, workers=0)
    assert (progress.jobs, progress.over, [outcome.segment for outcome in progress.outcomes]) == (1, 3, [2])
    assert contents(tmp_path) == before


def test_a_video_that_cannot_be_measured_has_failed(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("no video\n" * 40)
    task = Task(str(tmp_path / "corpus"), settings(), segment=2.0)
    progress, failures = made([tmp_path / "a.mp4"], task, workers=0)
    assert [outcome.video for outcome in failures] == ["a.mp4"]
    progress, failures = made([tmp_path / "a.mp4"], task, workers=0)
    assert (progress.jobs, len(failures)) == (0, 1)


def test_a_gap_leaves_segments_without_frames(tmp_path: Path) -> None:
    """Pictures at 0.0 to 0.4 s and at 5.0 to 5.4 s; the one before the gap belongs to the first segment alone."""
    path = tmp_path / "gap.mkv"
    shift = "setpts='if(lt(N,5),N,N+45)/10/TB'"
    made_by = ["-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10", "-frames:v", "10", "-vf", shift, "-fps_mode", "vfr"]
    subprocess.run(["ffmpeg", "-v", "error", *made_by, "-c:v", "libx264", "-g", "3", str(path)], check=True)
    made([path], Task(str(tmp_path / "corpus"), settings("stream"), segment=1.0), workers=0)
    assert [(row["index"], row["segment"]) for row in rows(tmp_path / "corpus")] == [
        (index, 0 if index < 5 else 5) for index in range(10)
    ]
    lines: Sequence[str] = (tmp_path / "corpus" / "index.jsonl").read_text().splitlines()
    assert [json.loads(line)["frames"] for line in lines] == [5, 0, 0, 0, 0, 5]
