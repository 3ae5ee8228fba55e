"""What the hardware decodes is what PyAV decodes, codec by codec; encoded here, so that each exists."""

import logging
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.decode import nvdec
from foveate.cuda.decode.limits import Limits, capabilities
from foveate.cuda.decode.source import DeviceSource, on_device
from foveate.cuda.driver.device import Device
from foveate.pipeline import open_stream
from foveate.pipeline.frames import Damage, Frame
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

FRAMES = 24
WIDTH, HEIGHT = 336, 258


def encode(path: Path, codec: str, pixel_format: str, grain: int = 0, size: tuple[int, int] = (WIDTH, HEIGHT)) -> None:
    """A gradient that moves, with B-frames where the encoder makes them. ``grain``: film grain that AV1 synthesises."""
    rows, columns = np.indices(size[::-1])
    options = {"svtav1-params": f"film-grain={grain}"} if grain else {}
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = *size, pixel_format
        for index in range(FRAMES):
            picture = np.stack([(rows + 3 * index) % 256, (columns * 2 + index) % 256, (rows + columns) % 256], -1)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture.astype(np.uint8), format="rgb24")):
                out.mux(packet)
        for packet in stream.encode(None):
            out.mux(packet)


def by_pyav(path: Path) -> list[Frame]:
    source = open_source(str(path), SourceSettings())
    frames = [Frame(f.index, f.time, f.luma.copy(), f.chroma and tuple(p.copy() for p in f.chroma)) for f in source]  # type: ignore[arg-type]
    source.close()
    return frames


def rounded_by_hand(path: Path) -> list[Frame]:
    """Of 10 bits to 8, to the nearest; libswscale, which the CPU's sources use, dithers instead: one level at most."""

    def rounded(plane: av.video.plane.VideoPlane) -> NDArray[np.uint8]:
        values = np.frombuffer(memoryview(plane), np.uint16).reshape(plane.height, -1)[:, : plane.width]
        return np.minimum((values + 2) >> 2, 255).astype(np.uint8)

    with av.open(str(path)) as container:
        decoded = [
            (frame.time or 0.0, [rounded(plane) for plane in frame.planes]) for frame in container.decode(video=0)
        ]
    first = decoded[0][0]
    return [Frame(i, time - first, luma, (cb, cr)) for i, (time, (luma, cb, cr)) in enumerate(decoded)]


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("codec", "name", "pixel_format"),
    [
        ("libx264", "a.mp4", "yuv420p"),
        ("libx264", "a.mkv", "yuv420p"),
        ("libx265", "b.mp4", "yuv420p"),
        ("libx265", "c.mp4", "yuv420p10le"),
        ("libvpx-vp9", "d.webm", "yuv420p"),
    ],
)
def test_codecs(codec: str, name: str, pixel_format: str, tmp_path: Path) -> None:
    if codec not in av.codecs_available:
        pytest.skip(f"this PyAV has no encoder {codec}")
    path = tmp_path / name
    encode(path, codec, pixel_format)
    expected = rounded_by_hand(path) if "10" in pixel_format else by_pyav(path)
    found: list[Any] = []
    source = on_device(open_source(str(path), SourceSettings()), str(path), SourceSettings())
    assert isinstance(source, DeviceSource), source.info.decoded_on_cpu
    with Device():
        try:
            for frame in source:
                found.append((frame.time, frame.luma.copy(), *(plane.copy() for plane in frame.chroma or ())))
        finally:
            source.close()
    assert source.damage.frames == 0
    assert [seconds for seconds, *_ in found] == pytest.approx([frame.time for frame in expected])
    for (_, *planes), frame in zip(found, expected, strict=True):
        for mine, cpu in zip(planes, (frame.luma, *(frame.chroma or ())), strict=True):
            assert np.array_equal(mine, cpu)


@pytest.mark.gpu
@pytest.mark.parametrize("pixel_format", ["yuv420p", "yuv420p10le"])
@pytest.mark.parametrize("grain", [0, 30])
def test_av1_is_decoded_on_the_cpu_with_one_note(
    pixel_format: str, grain: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is chosen on the card is what the CPU engine chooses, but for cells at the cut."""
    if "libsvtav1" not in av.codecs_available:
        pytest.skip("this PyAV has no encoder libsvtav1")
    encode(tmp_path / "a.mp4", "libsvtav1", pixel_format, grain, (640, 360))
    found = []
    for engine in ("cuda", "cpu"):
        wanted: dict[str, Any] = {"engine": engine, "budget": 100, "cache": {"enabled": False}}
        with open_stream(str(tmp_path / "a.mp4"), **wanted) as stream:
            assert stream.info.codec == "av1"
            found.append([{*zip(each.x, each.y, each.lod, strict=True)} for each in stream])
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.endswith("a.mp4: decoded on the CPU: the hardware decoder is not used for av1")
    assert len(found[0]) == len(found[1]) == FRAMES
    both = sum(len(mine & cpu) for mine, cpu in zip(*found, strict=True))
    assert both >= 0.99 * sum(map(len, found[1]))


def transport(path: Path, pid: int, first: int) -> bytes:
    """A transport stream of H.264, its pictures from number ``first`` on, with a keyframe every 8."""
    options = {"mpegts_start_pid": str(pid), "output_ts_offset": str(first / 25)}
    with av.open(str(path), "w", format="mpegts", options=options) as out:
        stream = out.add_stream("libx264", rate=25, options={"g": "8", "bf": "0", "x264-params": "scenecut=0"})
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for index in range(first, first + FRAMES):
            picture = np.full((HEIGHT, WIDTH, 3), 5 * index % 256, np.uint8)
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    return path.read_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("joined", ["in the middle", "under another PID"])
def test_transport_streams_that_were_joined(joined: str, tmp_path: Path) -> None:
    path, one = tmp_path / "joined.ts", transport(tmp_path / "1.ts", 0x100, 0)
    if joined == "in the middle":
        path.write_bytes(one[len(one) // 188 // 4 * 188 :])
    else:
        path.write_bytes(one + transport(tmp_path / "2.ts", 0x200, FRAMES))
    expected = [(frame.time, int(frame.luma[0, 0])) for frame in by_pyav(path)]
    assert len(expected) == (16 if joined == "in the middle" else 2 * FRAMES)
    source = on_device(open_source(str(path), SourceSettings()), str(path), SourceSettings())
    assert isinstance(source, DeviceSource), source.info.decoded_on_cpu
    with Device():
        try:
            found = [(frame.time, int(frame.luma[0, 0])) for frame in source]
        finally:
            source.close()
    assert found == expected
    assert source.damage == Damage()


@pytest.mark.parametrize(
    ("codec", "pixel_format", "problem"),
    [
        ("mpeg4", "yuv420p", "the hardware decoder is not used for mpeg4"),
        ("av1", "yuv420p", "the hardware decoder is not used for av1"),
        ("h264", "yuv444p", "the hardware decoder is not used for pixel format yuv444p"),
        ("hevc", "yuv422p10le", "the hardware decoder is not used for pixel format yuv422p10le"),
    ],
)
def test_what_the_hardware_is_not_asked_for(codec: str, pixel_format: str, problem: str) -> None:
    assert nvdec.codec_problem(codec, pixel_format, 640, 480) == problem


@pytest.mark.parametrize("size", [(333, 258), (334, 257)])
def test_odd_sizes_are_left_to_the_cpu(size: tuple[int, int]) -> None:
    """VP9 has them; NVIDIA's decoder hands out one column more."""
    told = nvdec.codec_problem("vp9", "yuv420p", *size)
    assert told == f"the hardware decoder is not used for odd sizes such as {size[0]}x{size[1]}, which it rounds up"


def test_a_missing_driver_library_is_seen_before_the_package_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imported without a driver, PyNvVideoCodec ends the process."""
    monkeypatch.setattr(nvdec, "_LIBRARIES", ("libno-such-library.so.1",))
    monkeypatch.setattr(nvdec.importlib, "import_module", lambda name: pytest.fail(f"{name} was imported"))
    assert "libno-such-library.so.1" in (nvdec.library_problem() or "")


def test_a_size_beyond_the_hardwares_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Held:
        def __init__(self, index: int) -> None: ...

        def __enter__(self) -> "Held":
            return self

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(nvdec, "gpu_problem", lambda: None)
    monkeypatch.setattr(nvdec, "library_problem", lambda: None)
    monkeypatch.setattr(nvdec, "Device", Held)
    monkeypatch.setattr(nvdec, "capabilities", lambda *_: Limits(48, 16, 4096, 4096))
    told = nvdec.codec_problem("h264", "yuv420p", 32, 480)
    assert told == "this GPU decodes h264 from 48x16 to 4096x4096 pixels, and the video has 32x480"
    assert nvdec.codec_problem("h264", "yuv420p", 48, 16) is None
    monkeypatch.setattr(nvdec, "capabilities", lambda *_: None)
    assert nvdec.codec_problem("h264", "yuv420p", 640, 480) == "this GPU does not decode h264 with 8 bits"


@pytest.mark.gpu
@pytest.mark.parametrize("codec", ["H264", "HEVC", "VP9"])
@pytest.mark.parametrize("depth", [8, 10])
def test_what_the_hardware_decodes_is_what_the_library_says(codec: str, depth: int) -> None:
    library = pytest.importorskip("PyNvVideoCodec")
    with Device() as device:
        found = capabilities(device.index, codec, depth)
    kinds = getattr(library.cudaVideoCodec, codec), library.cudaVideoChromaFormat(1)
    told = library.GetDecoderCaps(gpuid=0, codec=kinds[0], chromaformat=kinds[1], bitdepth=depth)
    wanted = Limits(*(told[name] for name in ("width_min", "height_min", "width_max", "height_max")))
    assert found == (wanted if told["supported"] else None)


def test_a_fall_back_warns_once_and_is_noted(samples: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = open_source(str(samples / "tree.mp4"), SourceSettings())
    with caplog.at_level(logging.WARNING, "foveate"):
        same = on_device(source, str(samples / "tree.mp4"), SourceSettings())
    assert same is source
    assert not isinstance(same, DeviceSource)
    assert len(caplog.records) == 1
    source.close()


@pytest.mark.gpu
@pytest.mark.parametrize("codec", ["H264", "HEVC", "VP9"])
@pytest.mark.parametrize("depth", [8, 10])
def test_limits_are_those_that_pynvvideocodec_tells(codec: str, depth: int) -> None:
    nvc = pytest.importorskip("PyNvVideoCodec")
    kind, chroma = getattr(nvc.cudaVideoCodec, codec), nvc.cudaVideoChromaFormat(1)
    told = nvc.GetDecoderCaps(gpuid=0, codec=kind, chromaformat=chroma, bitdepth=depth)
    sizes = (told["width_min"], told["height_min"], told["width_max"], told["height_max"])
    with Device():
        assert capabilities(0, codec, depth) == (Limits(*sizes) if told["supported"] else None)
