"""``foveate run`` for several videos: outputs, refusals, bad files among good ones, the summary."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from foveate.app.arguments import RunArguments, run_arguments
from foveate.app.console import Console
from foveate.app.main import main
from foveate.app.run import run
from foveate.app.tally import Tally
from foveate.pipeline.errors import EngineError, SettingsError, SinkError, SourceError
from foveate.pipeline.exits import Exit
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import Settings


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def clips(tmp_path: Path, samples: Path) -> Path:
    """Two folders with a clip of one name, in the working directory."""
    for folder in ("one", "two"):
        (tmp_path / "clips" / folder).mkdir(parents=True)
        shutil.copy(samples / "tree.mp4", tmp_path / "clips" / folder / "tree.mp4")
    return tmp_path / "clips"


def files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def several(*addresses: str, **changes: Any) -> RunArguments:
    return RunArguments(
        **{"addresses": addresses, "settings": Settings(), "out_dir": "t", "out": ("{}.jsonl",), **changes}
    )


def test_a_folder_into_a_folder(clips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "clips", "--out-dir", "tokens", "--frames", "2"]) == Exit.DONE
    assert files("tokens") == ["one/tree.mp4.jsonl", "two/tree.mp4.jsonl"]
    header, *records = Path("tokens/one/tree.mp4.jsonl").read_text().splitlines()
    assert json.loads(header)["source"] == "clips/one/tree.mp4"
    assert len(records) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "2 of 2 videos done\n4 frames" in err


def test_each_is_what_it_is_alone(clips: Path) -> None:
    flags = ["--frames", "3", "-q", "--memory", "stream"]
    main(["run", "clips", "--out-dir", "together", *flags])
    main(["run", "clips/two/tree.mp4", "--out", "alone.jsonl", *flags])
    assert Path("together/two/tree.mp4.jsonl").read_bytes() == Path("alone.jsonl").read_bytes()


def test_names_of_outputs(clips: Path) -> None:
    wanted = ["--out", "j/{}.jsonl", "n/{}/tokens.npz", "--overlay", "o-{}.mp4"]
    assert main(["run", "clips/*/*.mp4", *wanted, "--frames", "1", "-q"]) == Exit.DONE
    assert files("j") == ["one/tree.mp4.jsonl", "two/tree.mp4.jsonl"]
    assert files("n") == ["one/tree.mp4/tokens.npz", "two/tree.mp4/tokens.npz"]
    assert files("o-one") + files("o-two") == ["tree.mp4.mp4", "tree.mp4.mp4"]


def test_the_name_of_one_video() -> None:
    arguments = run_arguments(["a.mp4", "--out-dir", "d", "--out", "x-{}.npz", "-", "--overlay", "{}.mkv"])
    named = arguments.named("a.mp4")
    assert (named.out, named.overlay) == (("d/x-a.mp4.npz", "-"), "d/a.mp4.mkv")


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        ([], "the JSON lines of 2 videos cannot share standard output; give --out-dir DIR"),
        (["--out", "{}.jsonl", "-"], "cannot share standard output"),
        (["--out", "tokens.jsonl"], "output 'tokens.jsonl' must hold {}"),
        (["--out-dir", "d", "--overlay", "seen.mp4"], "output 'seen.mp4' must hold {}"),
        (["--out", "{}.jsonl", "--report", "r.html"], "output 'r.html' must hold {}"),
        (["--out", "{}.txt"], "unknown suffix '.txt'"),
        (["--out-dir", "d", "--show-channels", "{}.gif"], "must end in one of"),
        (["--out", "{}.jsonl", "./{}.jsonl"], "named twice"),
        (["--out-dir", "d", "--budget", "0"], "--budget must be"),
        (["--out-dir", "d", "--query", "zebra"], "zebra"),
        (["--out-dir", "d", "--score.scorer", "linear", "--score.weights", "gone.npz"], "gone.npz"),
    ],
)
@pytest.mark.usefixtures("clips")
def test_what_is_wrong_is_told_before_any_file_is_touched(
    outputs: list[str], said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = files(".")
    assert main(["run", "clips", *outputs]) == Exit.WRONG_ARGUMENTS
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err
    assert files(".") == before
    assert not Path("d").exists()


@pytest.mark.usefixtures("clips")
def test_no_output_may_be_one_of_the_sources(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "clips", "--out-dir", "clips", "--overlay", "{}"]) == Exit.FAILED
    assert "it is one of the sources" in capfd.readouterr().err


def test_bad_files_do_not_stop_the_others(clips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (clips / "one" / "a-empty.mp4").touch()
    (clips / "one" / "b-text.mkv").write_text("no video\n" * 50)
    (clips / "broken.mp4").symlink_to("nowhere")
    assert main(["run", "clips", "rtsp://127.0.0.1:1/x", "--out-dir", "t", "--frames", "1"]) == Exit.FAILED
    assert files("t") == ["one/tree.mp4.jsonl", "two/tree.mp4.jsonl"]
    said = capfd.readouterr().err.splitlines()
    assert "2 of 6 videos done" in said
    failures = [line for line in said if line.startswith("foveate: error: ")]
    assert [any(name in line for line in failures) for name in ("a-empty.mp4", "b-text.mkv", "broken.mp4", "rtsp://")]
    assert len(failures) == 4


def test_damage_is_told_and_counts_less_than_failure(fake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = fake(damage=Damage(3, ["packet 7 is cut"]))
    assert run(several("a.mp4", "b.mp4"), damaged.open, Console()) == Exit.DAMAGED
    said = capsys.readouterr().err
    assert "2 of 2 videos done\n10 frames" in said
    assert "warning: a.mp4: the source is damaged: 3 pictures or packets could not be decoded (packet 7 is cut)" in said


def test_a_bug_in_one_is_told_in_one_line(fake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def opened(source: str, settings: Settings, /, *, sinks: Any) -> Any:
        return fake(error=KeyError("gone") if source == "a.mp4" else None)

    folder = str(tmp_path / "t")
    assert run(several("a.mp4", "b.mp4", out_dir=folder, quiet=True), opened, Console()) == Exit.FAILED
    assert capsys.readouterr().err == "foveate: error: a.mp4: KeyError: 'gone'\n"


@pytest.mark.parametrize("error", [SettingsError("no such word"), EngineError("no card")])
def test_what_is_wrong_for_all_ends_the_run(error: Exception) -> None:
    def opened(source: str, settings: Settings, /, *, sinks: Any) -> Any:
        raise error

    with pytest.raises(type(error), match=str(error)):
        run(several("a.mp4", "b.mp4"), opened, Console())


def test_a_folder_that_cannot_be_made(clips: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("t").write_text("a file")
    assert main(["run", "clips", "--out-dir", "t", "--frames", "1", "-q"]) == Exit.FAILED
    said = capfd.readouterr().err
    assert said.count("cannot write t/") == 2
    assert Path("t").read_text() == "a file"


def test_an_interruption_tells_how_far_it_came(clips: Path, start: Any, long_clip: Path) -> None:
    os.link(long_clip, clips / "zlong.mp4")
    process = start("run", str(clips), "--out-dir", "t", cwd=clips.parent)
    done = clips.parent / "t" / "zlong.mp4.jsonl"
    while not (done.exists() and done.stat().st_size > 10_000):
        assert process.poll() is None
    process.terminate()
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert b"interrupted after 2 of 3 videos" in err


def test_a_tally_of_two_runs(fake: Any) -> None:
    total = Tally()
    for count in (2, 3):
        tally = Tally()
        for selection in fake(count=count):
            tally.add(selection)
        total.include(tally)
    assert (total.frames, total.keyframes, total.tokens) == (5, 2, 15)
    assert (total.changed, total.recomputed) == (1.25, 2.5)


def test_errors_of_sinks_are_those_of_one_video(fake: Any) -> None:
    def opened(source: str, settings: Settings, /, *, sinks: Any) -> Any:
        return fake(
            error=SinkError("full") if source == "a.mp4" else SourceError("gone") if source == "c.mp4" else None
        )

    assert run(several("a.mp4", "b.mp4", "c.mp4"), opened, Console()) == Exit.FAILED
