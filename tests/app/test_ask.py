"""``foveate ask``, with a server that checks each request, and with a small model of random weights in a folder."""

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from tests.servers.chat import KEY, WORDS, ChatServer

SAID = "".join(WORDS)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the family Qwen2.5-VL, and its processor, as transformers keeps them."""
    pytest.importorskip("transformers", reason="needs the extra vlm")
    pytest.importorskip("torchvision", reason="needs the extra vlm")
    from tests.models.folder import model_folder

    return model_folder(tmp_path_factory.mktemp("model"))


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error that is the last line, with nothing on standard output."""
    said = capsys.readouterr()
    assert said.out == ""
    *_, last = said.err.splitlines()
    assert last.startswith("foveate: error: ")
    return last


def test_a_server_is_shown_what_the_words_ask_for(
    chat: ChatServer, clip: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", KEY)
    served = ["--server", chat.address, "--model", "tiny", "--key-env", "MINE", "--max-tokens", "7"]
    assert main(["ask", clip, "Who is moving there?", *served, "--frames", "4", "--fps", "0.5"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{SAID}\n"
    looking, spent = said.err.splitlines()
    assert looking == "looking for 'moving'"
    assert re.fullmatch(r"4 frames, 0\.0 to 6\.0 s: \d\d\d of 1,728 language-model tokens \(\d+\.\d%\)", spent)
    assert int(spent.split(": ")[1].split(" of ")[0]) <= 4 * 68
    assert KEY not in said.err
    (request,) = chat.asked
    assert (request["key"], request["model"], request["max_tokens"]) == (f"Bearer {KEY}", "tiny", 7)
    times = [text for text in request["texts"] if "seconds" in text]
    assert times == ["<0.0 seconds>", "<2.0 seconds>", "<4.0 seconds>", "<6.0 seconds>"]
    assert request["texts"][-1] == "Who is moving there?"
    parts = len(request["texts"]) - 5  # each with a text of its own, besides the times and the question
    assert parts >= 3
    assert len(request["pictures"]) == 4 + parts
    tokens = sum(-(-height // 32) * -(-width // 32) for height, width, _ in (p.shape for p in request["pictures"]))
    assert f": {tokens} of" in spent


def test_a_server_is_sent_the_chosen_tokens(chat: ChatServer, clip: str, capsys: pytest.CaptureFixture[str]) -> None:
    served = ["--server", chat.address, "--model", "tiny", "--tokens"]
    assert main(["ask", clip, "Who is moving?", *served, "--frames", "2", "--budget", "30"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{SAID}\n"
    (request,) = chat.asked
    assert request["texts"] == ["<0.0 seconds>", "<1.0 seconds>", "Who is moving?"]
    assert request["pictures"] == []
    given = 0
    for frame in request["tokens"]:
        assert frame["foveate_size"].tolist() == [768, 576]
        count = len(frame["foveate_patches"])
        assert frame["foveate_places"].shape == (count, 3)
        assert count <= 4 * 30
        given += count // 4
    assert len(request["tokens"]) == 2
    assert f"2 frames, 0.0 to 1.0 s: {given} of 864 language-model tokens" in said.err


def test_without_a_word_that_it_knows_each_frame_is_one_picture(
    chat: ChatServer, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    served = ["--server", chat.address, "--model", "tiny", "--frames", "2", "--budget", "30", "--start", "-2"]
    assert main(["ask", clip, "What do they do?", *served]) == 0
    assert capsys.readouterr().err.startswith("no query: no word")
    (request,) = chat.asked
    assert [picture.shape for picture in request["pictures"]] == [(160, 192, 3)] * 2  # 5 x 6 blocks of 32 pixels


def test_a_query_of_ones_own_takes_the_place_of_the_words(
    chat: ChatServer, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    served = ["--server", chat.address, "--model", "tiny", "--frames", "1", "--query", "red", "--query=-blue"]
    assert main(["ask", clip, "What is moving?", *served]) == 0
    assert capsys.readouterr().err.startswith("looking for 'red', '-blue'\n1 frame, 0.0 to 0.0 s: ")


def test_quiet_means_the_answer_alone(chat: ChatServer, clip: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ask", clip, "?", "--server", chat.address, "--model", "tiny", "--frames", "1", "-q"]) == 0
    assert capsys.readouterr() == (f"{SAID}\n", "")


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("401", "401 Unauthorized: the reason of 401 in two lines; set the environment variable OPENAI_API_KEY"),
        ("400", "400 Bad Request: the reason of 400 in two lines"),
        ("garbage", "is not an OpenAI-compatible API"),
    ],
)
def test_what_a_server_does_wrong_is_one_line(
    behaviour: str, said: str, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ChatServer(behaviour) as server:
        assert main(["ask", clip, "?", "--server", server.address, "--model", "tiny", "--frames", "1"]) == 1
    assert said in line(capsys)


def test_what_came_of_an_answer_that_breaks_off_stays(clip: str, capsys: pytest.CaptureFixture[str]) -> None:
    with ChatServer("cut") as server:
        assert main(["ask", clip, "?", "--server", server.address, "--model", "tiny", "--frames", "1", "-q"]) == 1
    said = capsys.readouterr()
    assert said.out == f"{WORDS[0]}\n"
    assert "the answer was cut off after 4 characters" in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["CLIP"], 2, "QUESTION is missing; see foveate ask --help"),
        (["CLIP", "?"], 2, "--model is missing; see foveate ask --help"),
        (["CLIP", " ", "--model", "m"], 2, "QUESTION must not be empty"),
        (
            ["CLIP", "?", "--model", "absent"],
            2,
            "--model must be a folder with a model, got 'absent'; use --server URL",
        ),
        (["CLIP", "?", "--model", "sample_videos"], 2, "--model sample_videos has no config.json"),
        (["CLIP", "?", "--model", "m", "--server", "nowhere"], 2, "--server must be an address such as"),
        (["CLIP", "?", "--model", "m", "--server", "http://a", "--query", "chair"], 2, "does not understand 'chair'"),
        (["absent.mp4", "?", "--model", "m", "--server", "http://a"], 1, "absent.mp4: no such file"),
        (["rtsp://a/b", "?", "--model", "m"], 1, "rtsp://a/b is a live source; use --every 10s to ask"),
        (["CLIP", "?", "--model", "m", "--every", "10s"], 1, "is not a live source, and --every is for live sources"),
        (["CLIP", "?", "--model", "m", "--every", "soon"], 2, "--every must be a time such as 90s"),
        (["CLIP", "?", "--model", "m", "--end", "x"], 2, "--end must be a time such as 12.5"),
        (["CLIP", "?", "--model", "m", "--limit", "0"], 2, "--limit must be at least 1, got 0"),
        (["CLIP", "?", "--model", "m", "--frames", "0"], 2, "--frames must be at least 1, got 0"),
        (["CLIP", "?", "--model", "m", "--memory", "all"], 2, "--memory"),
        (
            ["CLIP", "?", "--model", "m", "--server", "http://a", "--memory", "stream"],
            2,
            "--memory stream needs a model",
        ),
        (["CLIP", "?", "--model", "m", "--tokens"], 2, "--tokens needs --server; a model in a folder always gets"),
        (
            ["rtsp://a/b", "?", "--model", "m", "--every", "9s", "--frames", "2"],
            2,
            "together with --every needs --memory fr",
        ),
    ],
)
def test_wrong_arguments_are_one_line(
    arguments: list[str], code: int, said: str, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", *(clip if argument == "CLIP" else argument for argument in arguments)]) == code
    assert said in line(capsys)


def test_a_model_in_a_folder_answers_about_the_chosen_patches(
    folder: Path, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["ask", clip, "Who is moving?", "--model", str(folder), "--max-tokens", "9", "--memory", "frame"]
    assert main([*asked, "--frames", "4"]) == 0
    said = capsys.readouterr()
    assert 1 <= len(said.out.strip()) <= 9  # a character is a token
    looking, spent = said.err.splitlines()
    assert looking == "looking for 'moving'"
    found = re.fullmatch(r"4 frames, 0\.0 to 3\.0 s: (\d+) of 1,728 language-model tokens \(\d+\.\d%\)", spent)
    assert found is not None  # a frame of 768 x 576 pixels has 24 x 18 groups of 32
    assert 200 <= int(found[1]) <= 4 * 68


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--budget", "5000"], r"a frame's 5000 tokens, the question's \d+ and the answer's 256 are more than the "
                               r"model's context holds: 4096; lower --budget or --max-tokens"),
        (["--max-tokens", "5000"], r"the answer's 5000 are more than the model's context holds: 4096"),
        (["--limit", "300"], r"are more than --limit 300 allows: 300; lower --budget or --max-tokens"),
        (["--limit", "5000"], r"--limit 5000 exceeds the model's context of 4096 tokens"),
    ],
)  # fmt: skip
def test_too_many_tokens_for_the_model_are_one_line(
    flags: list[str], said: str, folder: Path, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ask", clip, "?", "--model", str(folder), *flags]) == 1
    assert re.search(said, line(capsys))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            '{"model_type": "llava", "vision_config": {"patch_size": 14}}',
            "models of type 'llava' (patches of 14 pixels) do not fit; those of qwen2_vl, qwen2_5_vl, ",
        ),
        ('{"model_type": "llava"}', "models of type 'llava' do not fit; those of qwen2_vl, qwen2_5_vl, "),
        ("{", "cannot be loaded: config.json: Expecting property name"),
        ('{"model_type": "qwen2_5_vl"}', "cannot be loaded"),
    ],
)
def test_a_model_that_does_not_fit_is_one_line(
    config: str, said: str, tmp_path: Path, clip: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "qwen" in config:
        pytest.importorskip("transformers", reason="needs the extra vlm")
    (tmp_path / "config.json").write_text(config)
    assert main(["ask", clip, "?", "--model", str(tmp_path)]) == 1
    assert said in line(capsys)


def test_what_is_missing_or_old_comes_with_the_command_that_brings_it(
    tmp_path: Path, clip: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2_vl"}))
    found = metadata.version
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "transformers", None)
        patched.setattr(metadata, "version", lambda name: "5.17.9" if name == "transformers" else found(name))
        assert main(["ask", clip, "?", "--model", str(tmp_path)]) == 1
    assert "--model DIR needs transformers 5.18.0 or later, got 5.17.9: pip install" in line(capsys)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "torch", None)
        assert main(["ask", clip, "?", "--model", str(tmp_path)]) == 1
    assert re.search(r"--model DIR needs torch, which is not installed: pip install .*\[vlm\]", line(capsys))


def test_as_a_process_it_streams_the_answer(
    chat: ChatServer, clip: str, foveate: Callable[..., tuple[int, str, str]]
) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": KEY}
    served = ["--server", chat.address, "--model", "tiny", "--frames", "3"]
    code, out, err = foveate("ask", clip, "What is moving?", *served, env=environment)
    assert (code, out) == (0, f"{SAID}\n")
    assert err.count("\n") == 2
    assert chat.asked[0]["key"] == f"Bearer {KEY}"


def test_what_the_terminal_cannot_show_ends_nothing(
    chat: ChatServer, clip: str, foveate: Callable[..., tuple[int, str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    served = ["--server", chat.address, "--model", "tiny", "--frames", "1", "-q"]
    plain = {**os.environ, "PYTHONIOENCODING": "ascii"}
    assert foveate("ask", clip, "?", *served, env=plain) == (0, "Some people walk ? slowly.\n", "")
    chat.words = ("\x1b]0;title\x07", "a\tb", "\nc")
    assert main(["ask", clip, "?", *served]) == 0
    assert capsys.readouterr().out == "]0;titlea\tb\nc\n"


def test_what_an_address_leads_to_decides_whether_every_is_wanted(
    mjpeg: Any, server: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    served = ["?", "--server", "http://127.0.0.1:9", "--model", "tiny"]
    assert main(["ask", f"http://127.0.0.1:{mjpeg.port}/stream?rate=25", *served]) == 1
    assert "is a live source; use --every 10s to ask about its latest frames" in line(capsys)
    files = server("files.py", "sample_videos")
    assert main(["ask", f"http://127.0.0.1:{files.port}/ranges/tree.mp4", *served, "--every", "1s"]) == 1
    assert "is not a live source, and --every is for live sources only" in line(capsys)


def test_a_live_source_is_asked_about_again_until_ctrl_c(chat: ChatServer, mjpeg: Any, start: Any) -> None:
    served = ["--server", chat.address, "--model", "tiny", "--frames", "2", "--fps", "10", "--every", "1s"]
    process = start("ask", f"http://127.0.0.1:{mjpeg.port}/stream?rate=25", "What is it?", *served)
    end = time.monotonic() + 30
    while len(chat.asked) < 3 and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out.decode().count(SAID) >= 2
    assert err.decode().splitlines()[-1] == "interrupted"
    assert {len(request["pictures"]) for request in chat.asked} == {2}
    seconds = [float(request["texts"][0].removeprefix("<").split()[0]) for request in chat.asked]
    assert all(later - earlier >= 0.5 for earlier, later in pairwise(seconds))
