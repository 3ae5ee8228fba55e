"""What the hardware decodes of a video that is sampled is what PyAV shows at those times."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from foveate.cuda.decode.source import DeviceSource, on_device
from foveate.cuda.driver.device import Device
from foveate.pipeline.frames import Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

FRAMES, RATE = 90, 30
WIDTH, HEIGHT = 320, 256
FILES = {
    "closed.mp4": ("libx264", {"x264-params": "keyint=20:bframes=3:b-adapt=0:scenecut=0"}),
    "open.mkv": ("libx264", {"x264-params": "keyint=20:bframes=3:b-adapt=0:scenecut=0:open-gop=1"}),
    "a.ts": ("libx264", {"x264-params": "keyint=25:bframes=2:b-adapt=0:scenecut=0"}),
    "open_hevc.mp4": ("libx265", {"x265-params": "keyint=20:log-level=none"}),
    "closed_hevc.mkv": ("libx265", {"x265-params": "keyint=20:open-gop=0:log-level=none"}),
    "vp9.webm": ("libvpx-vp9", {"g": "20", "deadline": "realtime", "cpu-used": "8"}),
}
ASKED: list[dict[str, Any]] = [{"fps": 2}, {"every": 7}, {"start": 1.3, "end": 2.1}, {"start": 1, "every": 4}]


def encode(path: Path, codec: str, options: dict[str, str]) -> None:
    rows, columns = np.indices((HEIGHT, WIDTH))
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=RATE, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(FRAMES):
            picture = np.stack([(rows + 3 * index) % 256, (columns * 2 + index) % 256, (rows + columns) % 256], -1)
            frame = av.VideoFrame.from_ndarray(picture.astype(np.uint8), format="rgb24")
            frame.pts, frame.time_base = index, Fraction(1, RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))


@pytest.mark.gpu
@pytest.mark.parametrize("name", FILES)
def test_sampled_by_the_hardware(name: str, tmp_path: Path) -> None:
    codec, options = FILES[name]
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    encode(tmp_path / name, codec, options)
    address = str(tmp_path / name)
    whole = open_source(address, SourceSettings())
    frames: list[Frame] = list(whole)
    whole.close()
    for asked in ASKED:
        settings = SourceSettings(**asked)
        opened = open_source(address, settings)
        wanted = [frame.index for frame in opened]
        opened.close()
        source = on_device(open_source(address, settings), address, settings)
        assert isinstance(source, DeviceSource), source.info.decoded_on_cpu
        found: list[Any] = []
        with Device():
            try:
                for frame in source:
                    planes = [frame.luma.copy(), *(plane.copy() for plane in frame.chroma or ())]
                    found.append((frame.index, frame.time, planes))
            finally:
                source.close()
        assert [index for index, _, _ in found] == wanted, asked
        assert source.damage.frames == 0
        for index, seconds, planes in found:
            expected = frames[index]
            assert seconds == expected.time
            assert all(map(np.array_equal, planes, (expected.luma, *(expected.chroma or ()))))
