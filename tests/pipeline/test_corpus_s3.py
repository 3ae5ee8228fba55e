"""A corpus in a bucket, and from one: against a server on loopback."""

import json
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.corpus.jobs import Job, Outcome, Task, failed, segments_of
from foveate.pipeline.corpus.ledger import FAILURES, INDEX, Ledger
from foveate.pipeline.corpus.store import open_store
from foveate.pipeline.errors import SettingsError, SinkError, SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.settings import Settings
from tests.pipeline.corpus_cases import contents, made, make_clips

pytest.importorskip("moto.server", reason="needs moto: pip install -e '.[dev]'")
s3fs = pytest.importorskip("s3fs", reason="needs s3fs: pip install -e '.[corpus]'")

SETTINGS = Settings.model_validate({"engine": "cpu", "budget": 40, "source": {"frames": 3}})


@pytest.fixture
def bucket(server: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An empty bucket, ``s3://bucket``; as fsspec's file system."""
    address = f"http://127.0.0.1:{server('s3.py').port}"
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": "name",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nonexistent",
        "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem(use_listings_cache=False)
    files.mkdir("bucket")
    yield files
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("s3")
    make_clips(folder)
    return folder


def held(files: Any, below: str) -> dict[str, bytes]:
    return {name.removeprefix(f"{below}/"): files.cat_file(name) for name in files.find(below)}


def test_a_bucket_gets_the_same_files_as_a_folder(bucket: Any, clips: Path, tmp_path: Path) -> None:
    sources = [clips / "good" / name for name in ("00.mp4", "01.mp4", "more")]
    made(sources, Task(str(tmp_path), SETTINGS), workers=0)
    progress, failures = made(sources, Task("s3://bucket/tokens", SETTINGS), workers=2)
    assert (progress.jobs, failures) == (3, [])
    there = held(bucket, "bucket/tokens")
    assert there == {name: (tmp_path / name).read_bytes() for name in contents(tmp_path)}
    progress, _ = made(sources, Task("s3://bucket/tokens", SETTINGS), workers=2)
    assert (progress.jobs, progress.over) == (0, 3)


def test_videos_from_a_bucket(bucket: Any, clips: Path, tmp_path: Path) -> None:
    bucket.put(str(clips / "good") + "/", "bucket/videos/", recursive=True)
    bucket.pipe_file("bucket/videos/README.md", b"no video")
    bucket.pipe_file("bucket/videos/more/bad.mp4", b"no video")
    progress, failures = made(["s3://bucket/videos"], Task(str(tmp_path / "some"), SETTINGS), workers=0)
    assert progress.jobs == 21
    assert [outcome.video for outcome in failures] == ["more/bad.mp4"]
    assert failures[0].reason.startswith("s3://bucket/videos/more/bad.mp4: ")
    lines = [json.loads(line) for line in (tmp_path / "some" / "index.jsonl").read_text().splitlines()]
    made([clips / "good"], Task(str(tmp_path / "local"), SETTINGS), workers=0)
    local = [json.loads(line) for line in (tmp_path / "local" / "index.jsonl").read_text().splitlines()]
    assert [(line["key"], line["tokens"]) for line in lines] == [(line["key"], line["tokens"]) for line in local]


def test_one_object_and_a_pattern(bucket: Any, clips: Path) -> None:
    bucket.put(str(clips / "good") + "/", "bucket/videos/", recursive=True)
    assert [(each.name, each.size) for each in expand(["s3://bucket/videos/03.mp4"], buckets=True)] == [
        ("03.mp4", (clips / "good" / "03.mp4").stat().st_size)
    ]
    assert [each.name for each in expand(["s3://bucket/videos/0[12].mp4"], buckets=True)] == ["01.mp4", "02.mp4"]
    with pytest.raises(SourceError, match="there is no video there"):
        expand(["s3://bucket/nothing"], buckets=True)


@pytest.fixture
def requests(bucket: Any, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often which call was made to the server."""
    made: Counter[str] = Counter()
    call = s3fs.S3FileSystem._call_s3

    async def counted(self: Any, method: str, *more: Any, **named: Any) -> Any:
        made[method] += 1
        return await call(self, method, *more, **named)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", counted)
    return made


def test_a_run_with_nothing_to_do_makes_as_many_requests_for_many_videos_as_for_few(
    bucket: Any, requests: Counter[str]
) -> None:
    counts = []
    for videos in (3, 40):
        task = Task(f"s3://bucket/{videos}", SETTINGS, segment=60.0)
        ledger = Ledger(open_store(task.store))
        for number in range(videos):
            job = Job(f"{number}.mp4", f"/nowhere/{number}.mp4", "shown")
            ledger.keep(Outcome(job.key, job.video, None, "done", segments=2))
            for each in segments_of(job, 2):
                ledger.keep(Outcome(each.key, each.video, each.segment, "done", frames=1))
            lost = Job(f"lost/{number}.mp4", f"/nowhere/lost/{number}.mp4", "shown", measures=True)
            ledger.keep(failed(lost, "it is lost"))
        sources = [f"/nowhere/{folder}{number}.mp4" for folder in ("", "lost/") for number in range(videos)]
        made(sources, task, workers=0)
        tables = [bucket.cat_file(f"bucket/{videos}/{name}") for name in (INDEX, FAILURES)]
        assert [content.count(b"\n") for content in tables] == [2 * videos, videos]
        requests.clear()
        progress, failures = made(sources, task, workers=0)
        assert (progress.jobs, progress.over, len(failures)) == (0, 3 * videos, videos)
        assert tables == [bucket.cat_file(f"bucket/{videos}/{name}") for name in (INDEX, FAILURES)]
        counts.append(dict(requests))
    assert counts[0] == counts[1]


def test_a_record_that_has_changed_is_fetched(bucket: Any, requests: Counter[str]) -> None:
    task = Task("s3://bucket/tokens", SETTINGS)
    ledger = Ledger(open_store(task.store))
    for number, frames, tables in ((1, 10, 0), (2, 20, 1), (2, 30, 1)):
        job = Job(f"{number}.mp4", f"/nowhere/{number}.mp4", "shown")
        ledger.keep(Outcome(job.key, job.video, None, "done", frames=frames))
        requests.clear()
        ledger.write_tables()
        assert requests["get_object"] == tables + 1
    lines = [json.loads(line) for line in bucket.cat_file("bucket/tokens/index.jsonl").splitlines()]
    assert [(line["video"], line["frames"]) for line in lines] == [("1.mp4", 10), ("2.mp4", 30)]


def test_a_list_of_objects_takes_few_requests(bucket: Any, requests: Counter[str], tmp_path: Path) -> None:
    for number in range(60):
        bucket.pipe_file(f"bucket/videos/{number}.mp4", b"x" * number)
    counts = []
    for videos in (20, 60):
        requests.clear()
        names = tmp_path / f"{videos}.txt"
        names.write_text("".join(f"s3://bucket/videos/{number}.mp4\n" for number in range(videos)))
        inputs = expand([f"@{names}"], buckets=True)
        assert [(each.name, each.size) for each in inputs] == [(f"{number}.mp4", number) for number in range(videos)]
        counts.append(dict(requests))
    assert counts[0] == counts[1]


def test_an_object_that_is_not_there_does_not_stop_the_others(bucket: Any, clips: Path, tmp_path: Path) -> None:
    bucket.put_file(str(clips / "good" / "03.mp4"), "bucket/videos/03.mp4")
    sources = ["s3://bucket/videos/03.mp4", *(f"s3://bucket/videos/gone{number}.mp4" for number in range(20))]
    for some in (sources, sources[:3]):
        progress, failures = made(some, Task(str(tmp_path / str(len(some))), SETTINGS), workers=0)
        assert progress.jobs == len(some)
        assert len(failures) == len(some) - 1
        assert failures[0].reason.startswith("s3://bucket/videos/gone0.mp4: there is no such bucket or object")


def test_an_output_that_fails_leaves_nothing(bucket: Any) -> None:
    store = open_store("s3://bucket/tokens")

    def half() -> None:
        with store.whole("frames/a") as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert store.names("frames") == set()
    assert bucket.find("bucket/tokens") == []


def test_a_bucket_that_is_not_there(bucket: Any, clips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", str(clips / "good"), "--out", "s3://nowhere/tokens", "--frames", "1"]) == Exit.FAILED
    said = capfd.readouterr().err
    assert "there is no such bucket" in said
    assert said.count("\n") == 1


def test_no_credentials(bucket: Any, clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(SinkError, match="there are no credentials; set AWS_ACCESS_KEY_ID"):
        made([clips / "good"], Task("s3://bucket/tokens", SETTINGS), workers=2)


def test_nobody_answers(bucket: Any, clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{unused.getsockname()[1]}")
        s3fs.S3FileSystem.clear_instance_cache()
        with pytest.raises(SinkError, match="Could not connect to the endpoint"):
            made([clips / "good"], Task("s3://bucket/tokens", SETTINGS), workers=2)


def test_a_silent_server(bucket: Any, clips: Path, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent}")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(SinkError, match="s3://bucket/tokens: "):
        made([clips / "good"], Task("s3://bucket/tokens", SETTINGS), workers=2)
    with pytest.raises(SourceError, match="s3://bucket/videos: "):
        expand(["s3://bucket/videos"], buckets=True)


def test_what_speaks_a_scheme_is_missing(clips: Path) -> None:
    with pytest.raises(SettingsError, match="Protocol not known: nowhere"):
        made([clips / "good"], Task("nowhere://bucket/tokens", SETTINGS))
