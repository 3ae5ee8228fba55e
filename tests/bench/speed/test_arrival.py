"""The benchmark of how late pictures come, at a pace that makes it short."""

import json
from pathlib import Path

import pytest

from foveate.bench.entry import exit_code
from foveate.bench.speed import arrival


def test_it_says_how_late_each_source_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "RATE", 200)
    monkeypatch.setattr(arrival, "_CODECS", {"h264": arrival._CODECS["h264"]})
    out = tmp_path / "record.json"
    assert exit_code(arrival.arrival, ["--pictures", "240", "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert record["late_ms"].keys() == {"rtsp h264, first", "rtsp h264", "mpegts by udp"}
    assert all(late >= 0.0 for late in record["late_ms"].values())


def test_what_is_not_possible_is_one_line() -> None:
    assert exit_code(arrival.arrival, ["--pictures", "100"]) == 2
