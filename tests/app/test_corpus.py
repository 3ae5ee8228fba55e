"""``foveate corpus`` as it is typed: summary, exit codes, wrong arguments, interruption."""

import errno
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from foveate.app.console import Console
from foveate.app.corpus.arguments import corpus_arguments
from foveate.app.corpus.progress import jobs_shown
from foveate.app.main import main
from foveate.pipeline.corpus.fork_server import ForkServer
from foveate.pipeline.errors import EngineError
from foveate.pipeline.exits import Exit
from tests.pipeline.corpus_cases import contents


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, samples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clips").mkdir()
    for name in ("tree.mp4", "bunny.mp4"):
        Path("clips", name).symlink_to(samples / name)


def test_a_corpus_and_then_nothing_more_to_do(capfd: pytest.CaptureFixture[str]) -> None:
    command = ["corpus", "clips", "--out", "tokens", "--frames", "2", "--workers", "2"]
    assert main(command) == Exit.DONE
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("2 jobs done, 0 failed\n4 frames, ")
    assert err.endswith(f"wrote {Path('tokens').absolute()}\n")
    before = contents("tokens")
    assert main(command) == Exit.DONE
    assert "0 jobs done, 0 failed, 2 were over before" in capfd.readouterr().err
    assert contents("tokens") == before


def test_what_failed_is_listed_every_time(capfd: pytest.CaptureFixture[str]) -> None:
    Path("clips/text.mkv").write_text("not a video\n" * 30)
    for _ in range(2):
        assert main(["corpus", "clips", "--out", "tokens", "--frames", "1", "--workers", "0", "-q"]) == Exit.FAILED
        (said,) = capfd.readouterr().err.splitlines()
        assert said.startswith("foveate: error: clips/text.mkv: ")
    assert len(list(Path("tokens/frames").iterdir())) == 2


def test_of_very_many_that_failed_a_file_tells_the_rest(capfd: pytest.CaptureFixture[str]) -> None:
    Path("list.txt").write_text("".join(f"gone/{number}.mp4\n" for number in range(120)))
    assert main(["corpus", "@list.txt", "--out", "tokens", "--workers", "0", "-q"]) == Exit.FAILED
    *said, last = capfd.readouterr().err.splitlines()
    assert [line.partition(": no such")[0] for line in said] == [
        f"foveate: error: gone/{number}.mp4" for number in range(100)
    ]
    assert last == f"foveate: error: 20 more failed; {Path('tokens').absolute()}/failures.jsonl lists all of them"
    lines = [json.loads(line) for line in Path("tokens/failures.jsonl").read_text().splitlines()]
    assert [line["video"] for line in lines] == [f"{number}.mp4" for number in range(120)]
    assert all("no such file" in line["reason"] for line in lines)


def test_with_nothing_failed_any_more_the_list_is_gone() -> None:
    command = ["corpus", "clips", "--out", "tokens", "--frames", "1", "--workers", "0", "-q"]
    Path("clips/late.mp4").symlink_to("later.mp4")
    assert main(command) == Exit.FAILED
    assert Path("tokens/failures.jsonl").exists()
    Path("clips/later.mp4").symlink_to(Path("clips/tree.mp4").absolute())
    assert main([*command, "--retry"]) == Exit.DONE
    assert not Path("tokens/failures.jsonl").exists()


@pytest.mark.parametrize(
    ("arguments", "forks"),
    [
        (["clips", "--out", "tokens"], True),
        (["clips", "--out=tokens", "--workers", "2"], True),
        (["clips", "--out", "tokens", "--workers=10"], True),
        (["clips", "--out", "tokens", "--help"], False),
        (["-h"], False),
        (["clips"], False),
        (["clips", "--out", "tokens", "--workers", "0"], False),
        (["clips", "--out", "tokens", "--workers=0"], False),
        (["clips", "--out", "tokens", "--ray", "127.0.0.1:1"], False),
        (["clips", "--out", "tokens", "--ray=local", "--ray-gpus", "0"], False),
    ],
)
def test_processes_are_prepared_only_where_they_are_used(
    arguments: list[str], forks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: ForkServer) -> None:
        raise EngineError("started")

    monkeypatch.setattr(ForkServer, "__init__", refuse)
    monkeypatch.setattr("foveate.app.corpus.command.corpus", lambda *_: Exit.DONE)
    said: list[str] = []
    monkeypatch.setattr(Console, "error", lambda self, text: said.append(text))
    main(["corpus", *arguments])
    assert ("started" in said) == forks


def test_a_live_source_is_refused(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "rtsp://me:secret@127.0.0.1:1/x", "--out", "tokens", "--workers", "0", "-q"]) == Exit.FAILED
    said = capfd.readouterr().err
    assert "is a live source; give it to foveate live" in said
    assert "secret" not in said
    assert not any("secret" in path.read_text() for path in Path("tokens").rglob("*.json*"))


def test_patches_become_tars() -> None:
    assert main(["corpus", "clips", "--out", "tokens", "--frames", "1", "--workers", "0", "-q", "--patches"]) == 0
    assert {path.suffix for path in Path("tokens/frames").iterdir()} == {".tar"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["clips"], "--out is missing"),
        (["--out", "tokens"], "SOURCE is missing"),
        (["clips", "--out", "tokens", "--shard", "4/3"], "--shard must be I/N with I from 1 to N"),
        (["clips", "--out", "tokens", "--shard", "0/3"], "--shard must be I/N"),
        (["clips", "--out", "tokens", "--shard", "half"], "--shard must be I/N"),
        (["clips", "--out", "tokens", "--workers", "-1"], "--workers must"),
        (["clips", "--out", "tokens", "--limit", "soon"], "--limit must be a time"),
        (["clips", "--out", "tokens", "--limit", "5", "--workers", "0"], "--limit needs workers"),
        (["clips", "--out", "tokens", "--segment", "0"], "--segment must"),
        (["clips", "--out", "tokens", "--segment", "10m", "--start", "5"], "--segment takes whole videos"),
        (["clips", "--out", "tokens", "--ray-gpus", "0.5"], "--ray-gpus needs --ray"),
        (["clips", "--out", "tokens", "--budget", "0"], "--budget must be"),
        (["clips", "--out", "tokens", "--query", "zebra"], "zebra"),
        (["clips", "--out", "tokens", "--bugdet", "3"], "did you mean --budget?"),
        (["clips", "--out", "tokens", "--worker", "3"], "did you mean --workers?"),
        (["clips", "--out", "nowhere://bucket/x"], "Protocol not known"),
    ],
)
def test_wrong_arguments(arguments: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", *arguments]) == Exit.WRONG_ARGUMENTS
    err = capfd.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not Path("tokens").exists()


@pytest.mark.parametrize(
    ("sources", "said"), [(["gone/*.mp4"], "no file matches"), (["@gone.txt"], "the list gone.txt cannot be read")]
)
def test_sources_that_stand_for_nothing(sources: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", *sources, "--out", "tokens"]) == Exit.FAILED
    assert said in capfd.readouterr().err
    assert not Path("tokens").exists()


@pytest.mark.parametrize("place", ["a-file", "a-file/below", "/proc/nothing"])
def test_a_store_that_cannot_be(place: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("a-file").write_text("precious")
    assert main(["corpus", "clips", "--out", place]) == Exit.FAILED
    err = capfd.readouterr().err
    assert err.startswith("foveate: error: cannot write ")
    assert err.count("\n") == 1
    assert Path("a-file").read_text() == "precious"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_store(
    number: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Writing the third file fails: those before are the description and the frames of a job."""
    whole, count = os.fsync, iter(range(100))

    def fsync(descriptor: int) -> None:
        if next(count) >= 2:
            raise OSError(number, os.strerror(number))
        whole(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        assert main(["corpus", "clips", "--out", "tokens", "--frames", "1", "--workers", "0"]) == Exit.FAILED
    err = capfd.readouterr().err
    assert err.startswith("foveate: error: cannot write ")
    assert err.count("\n") == 1
    assert {name.partition("/")[0] for name in contents("tokens")} == {"corpus.json", "frames"}
    assert not Path("tokens/_parts").exists()


def test_an_interruption_goes_on_later(start: Any, long_clip: Path, tmp_path: Path) -> None:
    process = start("corpus", "clips", str(long_clip), "--out", "tokens", "--workers", "2", cwd=tmp_path)
    done = tmp_path / "tokens" / "_done"
    while not (done.exists() and list(done.iterdir())):
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert b"the same command goes on from here" in err
    assert not (tmp_path / "tokens" / "_parts").exists()


def test_the_progress_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    with jobs_shown(quiet=False) as shown:
        shown.begin(2)
        shown.advance(3, failed=1, fps=42.0)
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    for row in ("jobs", "0/2", "1/5", "42 fps", "1 failed"):
        assert row in said
    before = screen.getvalue()
    with jobs_shown(quiet=True) as shown:
        shown.begin(2)
        shown.advance(0, failed=0, fps=1.0)
    assert screen.getvalue() == before


def test_the_store_may_be_relative() -> None:
    parsed = corpus_arguments(["clips", "--out", "tokens"], Console())
    assert parsed.task.store == str(Path.cwd() / "tokens")
    assert corpus_arguments(["clips", "--out", "s3://b/c"], Console()).task.store == "s3://b/c"
