"""HLS: a playlist of segments on a web server."""

import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from foveate.pipeline.settings import Settings
from foveate.pipeline.stream import open_stream


class _Sender(SimpleHTTPRequestHandler):
    """Goes on as soon as the first segment is asked for once more, by another connection."""

    def __init__(self, *arguments: Any, asked: list[str], **options: Any) -> None:
        self._asked = asked
        super().__init__(*arguments, **options)

    def do_GET(self) -> None:
        self._asked.append(self.path)
        if self._asked.count("/all0.ts") == 2:
            publish(Path(self.directory), 4)
        super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Segments of a second: of random noise, and white from the third one on."""
    noise = "nullsrc=size=64x64:rate=25:duration=2,geq=random(1)*255:128:128"
    white = "color=white:size=64x64:rate=25:duration=2"
    make = ["ffmpeg", "-v", "error", "-f", "lavfi", "-i", noise, "-f", "lavfi", "-i", white]
    make += ["-filter_complex", "[0]format=yuv420p[a];[1]format=yuv420p[b];[a][b]concat", "-c:v", "libx264"]
    make += ["-bf", "0", "-g", "25", "-f", "hls", "-hls_time", "1", "-hls_list_size", "0", str(tmp_path / "all.m3u8")]
    subprocess.run(make, check=True)
    publish(tmp_path, 2)
    return tmp_path


def publish(folder: Path, count: int) -> None:
    """A playlist with so many segments, and no word that it is over."""
    head, *segments = (folder / "all.m3u8").read_text().split("#EXTINF")
    part = folder / "part"
    part.write_text(head + "".join(f"#EXTINF{segment}" for segment in segments[:count]))
    part.rename(folder / "live.m3u8")


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """Of the playlist."""
    handler = partial(_Sender, asked=[], directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/live.m3u8"
        server.shutdown()


def test_what_was_played_already_is_not_played_again_after_a_reconnection(address: str) -> None:
    limits = {"connect_timeout": 10.0, "stall_timeout": 0.7, "policy": "every"}
    with open_stream(address, Settings(budget=16, patches=True), live=limits) as stream:
        got = list(islice(stream, 100))
        assert stream.status is not None
        assert stream.status.connections >= 2
    assert [selection.index for selection in got] == list(range(100))
    whites = [selection.patches is not None and selection.patches.min() > 200 for selection in got]
    assert whites == [False] * 50 + [True] * 50
