"""A corpus: what is done, what fails, what is done again; the same by one process, by several, and by a cluster."""

import io
import json
import os
import resource
import socket
import subprocess
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from foveate.pipeline.corpus.folder_store import FolderStore
from foveate.pipeline.corpus.jobs import Task
from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import open_sink
from foveate.pipeline.stream import open_stream
from tests.pipeline.corpus_cases import BAD, FRAMES, GOOD, contents, depth_settings, made, make_clips

QUICK = Settings.model_validate({"engine": "cpu", "budget": 40, "source": {"frames": 3}})


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    make_clips(folder)
    return folder


@pytest.fixture(scope="session")
def alone(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The corpus of the good clips as one process makes it: the SHA-256 of every file, by name."""
    store = tmp_path_factory.mktemp("alone")
    progress, failures = made([clips / "good"], Task(str(store), depth_settings(clips)), workers=0)
    assert (progress.jobs, len(progress.outcomes), failures) == (GOOD, GOOD, [])
    return contents(store)


def frames(held: dict[str, str]) -> dict[str, str]:
    return {name: digest for name, digest in held.items() if name.startswith("frames/")}


def test_layout(clips: Path, alone: dict[str, str]) -> None:
    assert len(frames(alone)) == len([name for name in alone if name.startswith("_done/")]) == GOOD
    assert set(alone) - set(frames(alone)) - {name for name in alone if name.startswith("_done/")} == {
        "corpus.json",
        "index.jsonl",
    }
    assert sum("more_00.mp4-" in name for name in frames(alone)) == 1  # beside 00.mp4


def test_rows_are_those_of_a_run(clips: Path, tmp_path: Path) -> None:
    clip = clips / "good" / "03.mp4"
    made([clip], Task(str(tmp_path / "corpus"), QUICK), workers=0)
    with open_stream(clip, QUICK, sinks=[open_sink(str(tmp_path / "run.parquet"))]) as stream:
        list(stream)
    (file,) = (tmp_path / "corpus" / "frames").iterdir()
    table, run = pyarrow.parquet.read_table(file), pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert table.column_names == ["video", "segment", *run.column_names]
    assert table.select(run.column_names).equals(run)
    assert table["video"].to_pylist() == ["03.mp4"] * 3
    assert table["segment"].to_pylist() == [0] * 3
    assert json.loads(table.schema.metadata[b"foveate"])["source"] == str(clip)


def test_all_files_are_one_table(clips: Path, tmp_path: Path) -> None:
    made([clips / "good"], Task(str(tmp_path), QUICK), workers=0)
    table = pyarrow.parquet.read_table(tmp_path / "frames")
    assert table.num_rows == GOOD * 3
    assert len(set(table["video"].to_pylist())) == GOOD


def test_the_index(clips: Path, tmp_path: Path) -> None:
    made([clips / "good"], Task(str(tmp_path), QUICK), workers=0)
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    assert [line["video"] for line in lines][:3] == ["00.mp4", "01.mp4", "02.mp4"]
    held = contents(tmp_path)
    for line in lines:
        assert held[line["file"]] == line["sha256"]
        assert (tmp_path / line["file"]).stat().st_size == line["bytes"]
        assert line["frames"] == 3


def test_samples_for_webdataset(clips: Path, tmp_path: Path) -> None:
    made([clips / "good" / "03.mp4"], Task(str(tmp_path), QUICK, "webdataset"), workers=0)
    (path,) = (tmp_path / "frames").iterdir()
    with open_stream(clips / "good" / "03.mp4", QUICK, patches=True) as stream:
        expected = list(stream)
    with tarfile.open(path) as tar:
        names = tar.getnames()
        samples = {tuple(name.split(".", 1)): tar.extractfile(name).read() for name in names[1:]}  # type: ignore[union-attr]
    assert names[0] == "__foveate__/header.json"
    keys = list(dict.fromkeys(key for key, _ in samples))
    assert len(keys) == 3
    assert {kind for _, kind in samples} == {"json", "patches.npy"}
    for key, selection in zip(keys, expected, strict=True):
        record = json.loads(samples[key, "json"])
        assert (record["video"], record["index"], record["x"]) == ("03.mp4", selection.index, selection.x.tolist())
        np.testing.assert_array_equal(np.load(io.BytesIO(samples[key, "patches.npy"])), selection.patches)


def test_bad_clips_do_not_stop_the_good_ones(clips: Path, alone: dict[str, str], tmp_path: Path) -> None:
    task = Task(str(tmp_path), depth_settings(clips))
    progress, failures = made([clips / "good", clips / "bad"], task, workers=2, limit=20)
    assert progress.jobs == GOOD + len(BAD)
    assert [outcome.video for outcome in failures] == [f"bad/{name}" for name in BAD]
    said = dict(zip(BAD, (outcome.reason for outcome in failures), strict=True))
    assert "index" in said["damaged.mp4"]
    assert "the file is empty" in said["empty.mp4"]
    assert said["hangs.mp4"] == "bad/hangs.mp4: not done within 20 s (--limit)"
    assert said["kills.mp4"] == "bad/kills.mp4: its process was ended by SIGKILL, 2 times"
    assert "no such file" in said["unreadable.mp4"].lower()
    there = {name.rpartition("-")[0]: digest for name, digest in frames(contents(tmp_path)).items()}
    assert len(there) == GOOD
    made_alone = {name.rpartition("-")[0].replace("frames/", "frames/good_"): name for name in frames(alone)}
    assert there.keys() == made_alone.keys()
    progress, failures = made([clips / "good", clips / "bad"], task, workers=2, limit=20)
    assert (progress.jobs, progress.over, len(failures)) == (0, GOOD + len(BAD), len(BAD))


def test_several_processes_give_the_same_bytes(clips: Path, alone: dict[str, str], tmp_path: Path) -> None:
    made([clips / "good"], Task(str(tmp_path), depth_settings(clips)), workers=3)
    assert contents(tmp_path) == alone


def test_a_second_run_does_what_is_missing(clips: Path, alone: dict[str, str], tmp_path: Path) -> None:
    task = Task(str(tmp_path), depth_settings(clips))
    made([clips / "good"], task, workers=0)
    for name in ("02.mp4", "11.mp4"):
        (done,) = (tmp_path / "_done").glob(f"{name}-*")
        done.unlink()
    progress, _ = made([clips / "good"], task, workers=0)
    assert sorted(outcome.video for outcome in progress.outcomes) == ["02.mp4", "11.mp4"]
    assert contents(tmp_path) == alone


def test_shards_share_the_work(clips: Path, alone: dict[str, str], tmp_path: Path) -> None:
    task = Task(str(tmp_path), depth_settings(clips))
    counts = [made([clips / "good"], task, workers=0, shard=(number, 3))[0].jobs for number in (1, 2, 3)]
    assert counts == [7, 7, 6]
    assert contents(tmp_path) == alone


def test_work_for_each_video_is_the_same_for_few_and_for_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of the file system: in a first run, where all fail, and in one with nothing to do."""
    counts: Counter[str] = Counter()

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any, **named: Any) -> Any:
            counts[name] += 1
            return call(*given, **named)

        return counting

    for name in ("stat", "listdir", "scandir", "replace", "fsync"):
        monkeypatch.setattr(os, name, counted(name, getattr(os, name)))
    first, second = [], []
    for videos in (10, 20, 30):
        task = Task(str(tmp_path / str(videos)), QUICK)
        sources = [tmp_path / f"{number}.mp4" for number in range(videos)]
        for runs in (first, second):
            counts.clear()
            _, failures = made(sources, task, workers=0)
            assert len(failures) == videos
            runs.append(Counter(counts))
    for runs in (first, second):
        assert runs[2] - runs[1] == runs[1] - runs[0]
    more = first[1] - first[0]
    assert more["replace"] == more["fsync"] == 10  # the record of each
    assert (second[1] - second[0]).keys() <= {"stat"}


def test_a_file_that_is_no_record_is_named(clips: Path, tmp_path: Path) -> None:
    task = Task(str(tmp_path), QUICK)
    made([clips / "good" / "00.mp4"], task, workers=0)
    (tmp_path / "_done" / ".nfs0001").write_text("of a file system")
    made([clips / "good" / "00.mp4"], task, workers=0)
    (tmp_path / "_done" / "half.json").write_text('{"video":')
    with pytest.raises(SinkError, match=r"_done/half\.json is no record of Foveate's; remove it"):
        made([clips / "good" / "00.mp4"], task, workers=0)


def test_what_failed_is_done_again_when_asked(clips: Path, tmp_path: Path) -> None:
    source = tmp_path / "clip.mp4"
    source.write_text("not a video\n" * 40)
    task = Task(str(tmp_path / "corpus"), QUICK)
    assert len(made([source], task, workers=0)[1]) == 1
    source.unlink()
    os.link(clips / "good" / "05.mp4", source)
    progress, failures = made([source], task, workers=0)
    assert (progress.jobs, len(failures)) == (0, 1)
    progress, failures = made([source], task, workers=0, retry=True)
    assert (progress.jobs, failures) == (1, [])
    assert list((tmp_path / "corpus" / "_failed").iterdir()) == []


def test_names_of_all_kinds(clips: Path, tmp_path: Path) -> None:
    """One of them is no text: its bytes are not UTF-8."""
    names = [
        "-dash.mp4",
        "line\nfeed.mp4",
        'quote"$HOME.mp4',
        "sp ace/日本.mp4",
        os.fsdecode(b"bad\xff.mp4"),
        "bad\\xff.mp4",
    ]
    for name in names:
        (tmp_path / "clips" / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(clips / "good" / "00.mp4", tmp_path / "clips" / name)
    for workers in (0, 2):
        store = tmp_path / str(workers)
        progress, failures = made([tmp_path / "clips"], Task(str(store), QUICK), workers=workers)
        assert (len(progress.outcomes), failures) == (len(names), [])
        table = pyarrow.parquet.read_table(store / "frames")
        assert set(table["video"].to_pylist()) == {*names[:4], "bad\\udcff.mp4", "bad\\xff.mp4"}
    assert contents(tmp_path / "0") == contents(tmp_path / "2")


def test_the_largest_comes_first(clips: Path, tmp_path: Path) -> None:
    progress, _ = made([clips / "good"], Task(str(tmp_path), QUICK), workers=0)
    sizes = [next((clips / "good").rglob(Path(outcome.video).name)).stat().st_size for outcome in progress.outcomes]
    best = max(path.stat().st_size for path in (clips / "good").rglob("*.mp4"))
    assert sizes[0] == best


def test_damage_is_in_the_ledger(cases: Path, tmp_path: Path) -> None:
    progress, failures = made([cases / "B3_truncated.mkv"], Task(str(tmp_path), Settings(engine="cpu")), workers=0)
    assert failures == []
    assert "cut short" in progress.outcomes[0].damage
    assert "cut short" in (tmp_path / "index.jsonl").read_text()


def test_a_corpus_of_other_settings_is_refused(clips: Path, tmp_path: Path) -> None:
    made([clips / "good" / "00.mp4"], Task(str(tmp_path), QUICK), workers=0)
    before = contents(tmp_path)
    with pytest.raises(SettingsError, match=r"holds a corpus of other settings \(budget: 40 there, 50 here\)"):
        made([clips / "good"], Task(str(tmp_path), QUICK.model_copy(update={"budget": 50})), workers=2)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_wrong_for_all_jobs_ends_the_run(workers: int, clips: Path, tmp_path: Path) -> None:
    """A folder in the place of the frames of a job cannot be written over."""
    task = Task(str(tmp_path), QUICK)
    made([clips / "good" / "00.mp4"], task, workers=0)
    (file,) = (tmp_path / "frames").iterdir()
    (done,) = (tmp_path / "_done").iterdir()
    done.unlink()
    file.unlink()
    (file / "in the way").mkdir(parents=True)
    with pytest.raises(SinkError, match="cannot write"):
        made([clips / "good"], task, workers=workers)


@pytest.fixture
def little_room() -> Iterator[None]:
    """As on a full disk: no file of this process and its children can be longer than 6,000 bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (6000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_store_without_room_ends_the_run(workers: int, clips: Path, tmp_path: Path, little_room: None) -> None:
    """What is left in a file's buffer fails once more when the file is closed: that must not hide the reason."""
    settings = QUICK.model_copy(update={"budget": 300})
    with pytest.raises(SinkError, match=r"^cannot write .*/frames/.*: "):
        made([clips / "good"], Task(str(tmp_path), settings), workers=workers)
    assert contents(tmp_path).keys() == {"corpus.json"}
    with pytest.raises(SinkError, match=r"^cannot write .*/_done/long\.json: "):
        FolderStore(str(tmp_path)).write("_done/long.json", bytes(7000))


def test_wrong_settings_are_told_before_anything_is_written(clips: Path, tmp_path: Path) -> None:
    for settings in (Settings(query=("zebra",)), depth_settings(tmp_path)):
        with pytest.raises(SettingsError):
            made([clips / "good"], Task(str(tmp_path / "corpus"), settings), workers=2)
    assert not (tmp_path / "corpus").exists()


def test_the_folder_of_unfinished_files_is_there_only_while_they_are_written(tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path / "corpus"))
    store.prepare()
    for name in ("a", "b"):
        with store.whole(name) as file:
            file.write(b"whole")
            FolderStore(str(tmp_path / "corpus")).sweep()  # of another process, which has done its part
        store.sweep()
    assert contents(tmp_path / "corpus").keys() == {"a", "b"}
    assert not (tmp_path / "corpus" / "_parts").exists()


def test_what_dead_processes_left_is_removed(clips: Path, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    parts = tmp_path / "_parts"
    parts.mkdir()
    (parts / f"{socket.gethostname()}.{gone.pid}.0011").write_text("half")
    (parts / f"{socket.gethostname()}.{os.getpid()}.0022").write_text("at work")
    (parts / "elsewhere.1.0033").write_text("on another machine")
    made([clips / "good" / "00.mp4"], Task(str(tmp_path), QUICK), workers=0)
    assert sorted(path.name.rpartition(".")[2] for path in parts.iterdir()) == ["0022", "0033"]


def test_frames_are_counted(clips: Path, tmp_path: Path) -> None:
    progress, _ = made([clips / "good"], Task(str(tmp_path), depth_settings(clips)), workers=0)
    assert [outcome.frames for outcome in progress.outcomes] == [FRAMES] * GOOD
