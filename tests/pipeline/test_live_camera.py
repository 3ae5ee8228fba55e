"""Cameras, as far as that goes without one: what libav is told, and one that is unplugged and comes back."""

from itertools import islice
from pathlib import Path
from typing import Any

import av
import pytest

from foveate.pipeline.live.status import Status
from foveate.pipeline.live.target import target_of
from foveate.pipeline.settings import LiveSettings, Settings
from foveate.pipeline.stream import open_stream

CAMERA = "/dev/video97"


def test_what_libav_is_told_of_a_camera() -> None:
    """The names are those of FFmpeg's v4l2 input (ffmpeg -h demuxer=v4l2)."""
    plain = target_of("97", LiveSettings())
    assert (plain.url, plain.format, plain.options) == (CAMERA, "v4l2", {})
    chosen = target_of(CAMERA, LiveSettings(format="mjpeg", size="1280x720", rate=29.97))
    assert chosen.options == {"input_format": "mjpeg", "video_size": "1280x720", "framerate": "29.97"}


class Camera:
    """Stands for libav's opening of a camera: five pictures each time it is plugged in, then it is unplugged."""

    def __init__(self, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened: list[tuple[str, str]] = []  # address and format
        self._absent = 0  # looks for the device that find nothing yet
        self._port = port
        self._exists, self._open = Path.exists, av.open
        monkeypatch.setattr(Path, "exists", lambda path: self._there() if str(path) == CAMERA else self._exists(path))
        monkeypatch.setattr(av, "open", self.open)

    def _there(self) -> bool:
        self._absent -= 1
        return self._absent < 0

    def open(self, address: str, **wishes: Any) -> Any:
        self.opened.append((address, wishes["format"]))
        self._absent = 2
        timeout = wishes["timeout"]
        return self._open(f"http://127.0.0.1:{self._port}/stream?end=5", timeout=timeout, metadata_errors="replace")


def test_a_camera_that_is_unplugged_comes_back(mjpeg: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    camera = Camera(mjpeg.port, monkeypatch)
    told: list[Status] = []
    limits = {"connect_timeout": 3.0, "stall_timeout": 1.0, "policy": "every", "retry_pause": 0.5}
    with open_stream("97", Settings(budget=60), listener=told.append, live=limits) as stream:
        got = list(islice(stream, 8))
        assert stream.status is not None
        assert (stream.status.connections, stream.status.tries) == (2, 4)
    assert [selection.index for selection in got] == list(range(8))
    assert got[5].keyframe == "discontinuity"
    assert camera.opened == [(CAMERA, "v4l2")] * 2
    assert [status.state for status in told] == ["streaming", "reconnecting", "reconnecting", "streaming", "closed"]
    assert "there is no camera at /dev/video97" in told[2].reason
