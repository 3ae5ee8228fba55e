"""MQTT: records at a real broker, which is started, refuses, goes away and comes back."""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks import open_sink
from foveate.pipeline.sinks.mqtt import found_boxes
from foveate.pipeline.stream import open_stream

CLIP = str(Path(__file__).parents[2] / "sample_videos" / "pedestrians.mp4")
MOSQUITTO = shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin:/opt/homebrew/sbin")
SOON = 20.0  # seconds
USER, PASSWORD = "door", "ge:h/m@7"
LOGIN = "door:ge%3Ah%2Fm%407@"  # the same in an address


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


class Broker:
    """A mosquitto on loopback."""

    def __init__(self, folder: Path, rules: str = "allow_anonymous true") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._settings = folder / "mosquitto.conf"
        # As root it would become a user who may not read what is in this folder.
        self._settings.write_text(f"user root\nlistener {self.port} 127.0.0.1\n{rules}\n")
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        assert MOSQUITTO is not None
        self._process = subprocess.Popen([MOSQUITTO, "-c", str(self._settings)], stderr=subprocess.DEVNULL)
        until(self._listens)

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait(SOON)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    pytest.importorskip("paho")
    if MOSQUITTO is None:
        pytest.skip("no mosquitto on this machine: apt-get install mosquitto")
    started = Broker(tmp_path)
    yield started
    started.stop()


class Reader:
    """Subscribes to everything."""

    def __init__(self, port: int, authority: Path | None = None) -> None:
        """``authority``: of the broker's certificate, where it speaks TLS."""
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        self.got: list[tuple[str, dict[str, Any]]] = []
        self._ready = threading.Event()
        self._client = Client(CallbackAPIVersion.VERSION2)
        if authority is not None:
            self._client.tls_set(str(authority))
            self._client.username_pw_set(USER, PASSWORD)
        self._client.on_connect = lambda client, *_: client.subscribe("#")
        self._client.on_subscribe = lambda *_: self._ready.set()
        self._client.on_message = lambda _client, _data, said: self.got.append((said.topic, json.loads(said.payload)))
        self._client.connect("127.0.0.1" if authority is None else "localhost", port)
        self._client.loop_start()
        assert self._ready.wait(SOON)

    def close(self) -> None:
        """End its thread."""
        self._client.disconnect()
        self._client.loop_stop()


def test_a_record_of_each_frame_arrives(broker: Broker) -> None:
    reader = Reader(broker.port)
    sink = open_sink(f"mqtt://127.0.0.1:{broker.port}/cameras/door")
    with open_stream(CLIP, sinks=[sink], query=["moving"], source={"frames": 12}) as stream:
        selections = list(stream)
    until(lambda: len(reader.got) == 12)
    reader.close()
    assert {topic for topic, _ in reader.got} == {"cameras/door"}
    for (_, record), selection in zip(reader.got, selections, strict=True):
        assert record["index"] == selection.index
        assert record["time"] == pytest.approx(selection.index / 10)
        assert record["tokens"] == len(selection)
        assert record["changed"] == pytest.approx(selection.changed, abs=1e-6)
        assert all(0 <= x0 < x1 <= 768 and 0 <= y0 < y1 <= 576 for x0, y0, x1, y1 in record["boxes"])
    assert reader.got[-1][1]["boxes"]  # people walk


def test_without_a_query_there_are_no_boxes(broker: Broker) -> None:
    reader = Reader(broker.port)
    sink = open_sink(f"mqtt://127.0.0.1:{broker.port}/a")
    with open_stream(CLIP, sinks=[sink], source={"frames": 1}) as stream:
        (selection,) = stream
    until(lambda: len(reader.got) == 1)
    reader.close()
    assert "boxes" not in reader.got[0][1]
    assert not selection.maps


def test_a_broker_that_goes_away_stops_nothing_and_is_found_again(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    sink: Any = open_sink(f"mqtt://127.0.0.1:{broker.port}/a")
    with open_stream(CLIP, sinks=[sink], source={"frames": 30}) as stream:
        assert next(stream).index == 0
        broker.stop()
        until(lambda: not sink._connected)
        for _ in range(9):
            next(stream)
        broker.start()
        reader = Reader(broker.port)
        until(lambda: sink._connected)
        assert len(list(stream)) == 20
    until(lambda: bool(reader.got) and reader.got[-1][1]["index"] == 29)
    reader.close()
    assert 0 < sink.dropped <= 30
    assert f"{sink.dropped} records were dropped" in caplog.text


def test_no_broker_is_one_line() -> None:
    pytest.importorskip("paho")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        pytest.raises(SinkError) as caught,
        open_stream(CLIP, sinks=[open_sink(f"mqtt://me:geheim77@127.0.0.1:{port}/a")], source={"frames": 1}) as stream,
    ):
        list(stream)
    said = str(caught.value)
    assert said == f"cannot write mqtt://127.0.0.1:{port}/a: Connection refused; is the broker running there?"


def test_a_password_that_is_refused_is_one_line_without_it(tmp_path: Path) -> None:
    pytest.importorskip("paho")
    if MOSQUITTO is None:
        pytest.skip("no mosquitto on this machine: apt-get install mosquitto")
    strict = Broker(tmp_path, "allow_anonymous false")
    try:
        sink = open_sink(f"mqtt://me:geheim77@127.0.0.1:{strict.port}/a")
        with (
            pytest.raises(SinkError, match=r"the broker refuses: Not authorized") as caught,
            open_stream(CLIP, sinks=[sink], source={"frames": 1}) as stream,
        ):
            list(stream)
    finally:
        strict.stop()
    assert "geheim77" not in str(caught.value)


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A broker with TLS that lets one user in: its port, and the certificate of its authority.

    Its own is made out to localhost.
    """
    pytest.importorskip("paho")
    if MOSQUITTO is None or (hasher := shutil.which("mosquitto_passwd")) is None:
        pytest.skip("no mosquitto on this machine: apt-get install mosquitto")

    def run(*command: str) -> None:
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "extensions").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    request = ("openssl", "req", "-newkey", "rsa:2048", "-nodes")
    use = ("-addext", "keyUsage=critical,keyCertSign")
    run(*request, "-x509", "-days", "2", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem", *use)
    run(*request, "-subj", "/CN=broker", "-keyout", "key.pem", "-out", "asked.csr")
    signed = ("openssl", "x509", "-req", "-in", "asked.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial")
    run(*signed, "-days", "2", "-extfile", "extensions", "-out", "certificate.pem")
    run(hasher, "-b", "-c", "passwords", USER, PASSWORD)
    files = f"certfile {tmp_path}/certificate.pem\nkeyfile {tmp_path}/key.pem\npassword_file {tmp_path}/passwords\n"
    started = Broker(tmp_path, f"{files}allow_anonymous false")
    yield started.port, tmp_path / "ca.pem"
    started.stop()


def refused(address: str) -> str:
    """The one line of what goes wrong."""
    with (
        pytest.raises(SinkError) as caught,
        open_stream(CLIP, sinks=[open_sink(address)], source={"frames": 1}) as stream,
    ):
        list(stream)
    said = str(caught.value)
    assert "\n" not in said
    assert not any(secret in said for secret in (PASSWORD, LOGIN, "geheim77"))
    return said


def test_over_tls_records_arrive(secure: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """The authority is named by OpenSSL's environment variable; user and password are let in."""
    port, authority = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    reader = Reader(port, authority)
    sink = open_sink(f"mqtts://{LOGIN}localhost:{port}/a")
    with open_stream(CLIP, sinks=[sink], source={"frames": 3}) as stream:
        assert len(list(stream)) == 3
    until(lambda: len(reader.got) == 3)
    reader.close()
    assert [record["index"] for _, record in reader.got] == [0, 1, 2]


def test_a_certificate_of_an_unknown_authority_is_one_line(secure: tuple[int, Path]) -> None:
    said = refused(f"mqtts://{LOGIN}localhost:{secure[0]}/a")
    assert said.startswith(f"cannot write mqtts://localhost:{secure[0]}/a: the broker's certificate is not trusted: ")
    assert said.endswith(
        "; name a PEM file with the certificate of its authority in the environment variable SSL_CERT_FILE"
    )


def test_a_certificate_for_another_host_is_one_line(secure: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    port, authority = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    said = refused(f"mqtts://{LOGIN}127.0.0.1:{port}/a")
    assert said == (
        f"cannot write mqtts://127.0.0.1:{port}/a: the broker's certificate is not trusted: ip address mismatch, "
        "certificate is not valid for '127.0.0.1'; use the host name that it was made out to"
    )


def test_a_wrong_password_over_tls_is_one_line(secure: tuple[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    port, authority = secure
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    said = refused(f"mqtts://{USER}:geheim77@localhost:{port}/a")
    assert said == f"cannot write mqtts://localhost:{port}/a: the broker refuses: Not authorized"


def test_a_port_for_tls_needs_the_other_scheme(secure: tuple[int, Path]) -> None:
    said = refused(f"mqtt://{LOGIN}localhost:{secure[0]}/a")
    assert said.endswith("the broker closes the connection at once; a port for TLS needs mqtts://")


def test_a_port_without_tls_is_one_line(broker: Broker) -> None:
    said = refused(f"mqtts://localhost:{broker.port}/a")
    assert said.endswith("; is the broker running there, and does it speak TLS on that port?")


@pytest.mark.parametrize("address", ["mqtt://host", "mqtt:///a", "mqtt://host/a+", "mqtt://me:geheim77@host:99999/a"])
def test_addresses_that_name_no_topic(address: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_sink(address)
    assert "geheim77" not in str(caught.value)


def test_boxes_are_those_of_connected_cells() -> None:
    """A region of 2x3 cells and one at the corner, which lies partly beyond a picture of 70x40 pixels."""
    with open_stream([np.zeros((40, 70, 3), np.uint8)], fps=1.0) as stream:
        (selection,) = stream
    assert isinstance(selection, Selection)
    relevance = np.zeros((3, 5), np.float32)
    relevance[0:2, 0:3] = 0.5
    relevance[2, 4] = 0.9
    relevance[0, 4] = 0.4
    assert found_boxes(replace(selection, maps={"query": relevance})) == [[0, 0, 48, 32], [64, 32, 70, 40]]
