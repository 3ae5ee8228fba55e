"""The client of servers that speak OpenAI's protocol, against one that checks each request."""

import socket
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.errors import ModelError, SettingsError
from foveate.pipeline.vlm.pictures import Picture
from foveate.pipeline.vlm.server import Server, Shown
from tests.servers.chat import KEY, WORDS, ChatServer

PICTURE = np.full((64, 96, 3), (200, 100, 50), np.uint8)
FRAMES = [
    Shown(0.0, [Picture(PICTURE, None, 6)]),
    Shown(1.0, [Picture(PICTURE, None, 6), Picture(PICTURE[:32, :32], (0, 10, 333, 500), 1)]),
]


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def client(server: ChatServer, **how: Any) -> tuple[Server, list[float]]:
    """A client that notes its pauses instead of waiting."""
    pauses: list[float] = []
    return Server(server.address, "tiny", wait=pauses.append, **how), pauses


def answer(asked: Server) -> str:
    return "".join(asked.stream(FRAMES, "Who walks?"))


def told(asked: Server) -> str:
    """The one line that asking ends with."""
    with pytest.raises(ModelError) as caught:
        answer(asked)
    (line,) = str(caught.value).splitlines()
    assert line.startswith("model 'tiny' at http://127.0.0.1:")
    return line


def test_the_answer_comes_piece_by_piece_and_the_request_holds_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer() as server:
        asked, pauses = client(server)
        assert list(asked.stream(FRAMES, "Who walks?", max_tokens=9)) == list(WORDS)
    (request,) = server.asked
    assert (request["model"], request["max_tokens"], request["key"]) == ("tiny", 9, f"Bearer {KEY}")
    assert [picture.shape for picture in request["pictures"]] == [(64, 96, 3), (64, 96, 3), (32, 32, 3)]
    for picture in request["pictures"]:  # of one colour, so that JPEG loses a level or two
        assert np.abs(picture.astype(int) - (200, 100, 50)).max() <= 3
    assert request["texts"][:2] == ["<0.0 seconds>", "<1.0 seconds>"]
    assert "[0, 10, 333, 500]" in request["texts"][2]
    assert request["texts"][3] == "Who walks?"
    assert pauses == []


def test_the_first_piece_is_there_before_the_last_is_sent() -> None:
    with ChatServer("stops") as server:
        pieces = client(server)[0].stream(FRAMES, "?")
        assert next(pieces) == WORDS[0]
        pieces.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("end", ["", "/", "/v1", "/v1/", "/v1/chat/completions"])
def test_the_address_may_hold_as_much_of_the_path_as_one_likes(end: str) -> None:
    with ChatServer() as server:
        assert "".join(Server(server.address + end, "tiny").stream(FRAMES, "?")) == "".join(WORDS)
    assert [request["key"] for request in server.asked] == [None]


@pytest.mark.parametrize("passing", ["429", "503", "hang up", "page"])
def test_what_passes_is_tried_again_with_growing_pauses(passing: str) -> None:
    with ChatServer(passing, passing, passing, "answer") as server:
        asked, pauses = client(server)
        assert answer(asked) == "".join(WORDS)
    assert server.tries == 4
    if passing == "429":  # which asks for 7 seconds
        assert pauses == [7.0, 7.0, 7.0]
    else:
        assert [round(pause, 1) >= least for pause, least in zip(pauses, (0.5, 1.0, 2.0), strict=True)] == [True] * 3
        assert max(pauses) <= 2.5


def test_what_does_not_pass_is_told_after_four_tries() -> None:
    with ChatServer("503") as server:
        line = told(client(server)[0])
    assert server.tries == 4
    assert "503 Service Unavailable: the reason of 503 in two lines, at the last of 4 tries" in line


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        ("400", "400 Bad Request: the reason of 400 in two lines"),
        ("401", "401 Unauthorized: the reason of 401 in two lines; set the environment variable OPENAI_API_KEY"),
        ("garbage", "is not an OpenAI-compatible API: it answered 'hello, this is a printer'"),
        ("error", "it reports: out of memory"),
        ("empty", "it answered nothing"),
    ],
)
def test_what_cannot_pass_is_told_at_once(behaviour: str, said: str) -> None:
    with ChatServer(behaviour) as server:
        assert said in told(client(server)[0])
    assert server.tries == 1


def test_an_answer_that_breaks_off_is_told_and_not_asked_for_again() -> None:
    with ChatServer("cut") as server:
        pieces = client(server)[0].stream(FRAMES, "?")
        assert next(pieces) == WORDS[0]
        with pytest.raises(ModelError, match="the answer was cut off after 4 characters"):
            next(pieces)
    assert server.tries == 1


@pytest.mark.parametrize("behaviour", ["silent", "stops", "drips"])
def test_a_slow_server_is_waited_for_only_so_long(behaviour: str) -> None:
    with ChatServer(behaviour) as server:
        begun = time.monotonic()
        assert "it sent nothing for 0.3 s" in told(client(server, silence_timeout=0.3)[0])
        assert time.monotonic() - begun < 5  # the server would take ten


def test_an_absent_server_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    pauses: list[float] = []
    line = told(Server(f"http://127.0.0.1:{port}", "tiny", wait=pauses.append))
    assert "no connection: Connection refused, at the last of 4 tries" in line
    assert len(pauses) == 3


def test_a_key_that_is_refused_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINE", "sk-falsch")
    with ChatServer() as server:
        line = told(client(server, key_variable="MINE")[0])
    assert "no such key: ***; set the environment variable MINE to a key that it accepts" in line
    assert "sk-falsch" not in line


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8000",
        "ftp://a/",
        "http://",
        "http://[::1",
        "http://a:99999999/",
        "http://a/?key=7",
        "http://a..b/",
    ],
)
def test_an_address_that_is_none_is_told(address: str) -> None:
    with pytest.raises(SettingsError, match="--server must be an address such as"):
        Server(address, "tiny")


def test_secrets_are_neither_taken_from_the_address_nor_sent_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="must hold no password") as caught:
        Server("http://me:geheim77@a/", "tiny")
    assert "geheim77" not in str(caught.value)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1\nHost: elsewhere")
    with pytest.raises(SettingsError, match="'OPENAI_API_KEY' holds no key") as caught:
        Server("http://a/", "tiny")
    assert "sk-1" not in str(caught.value)


def test_neither_torch_nor_transformers_is_imported() -> None:
    code = (
        "import sys, foveate.pipeline.vlm.server; print(sorted({'torch', 'transformers', 'openai'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
