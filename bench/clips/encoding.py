"""Writes the clips that benchmarks need, with PyAV's own scaler and encoder; no ffmpeg program is used."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np
from av.error import FFmpegError
from numpy.typing import NDArray

from foveate.pipeline.errors import SinkError, SourceError

DEFAULT_QUALITY: Final[Mapping[str, str]] = {"preset": "medium", "crf": "23"}  # libx264's own defaults
LOSSLESS: Final[Mapping[str, str]] = {"preset": "veryfast", "qp": "0"}
FAST: Final[Mapping[str, str]] = {"preset": "ultrafast", "crf": "23"}


def encode(
    path: Path,
    frames: Iterable[av.VideoFrame],
    rate: Fraction,
    options: Mapping[str, str],
    encoder: str = "libx264",
    pixel_format: str = "yuv420p",
) -> None:
    """Write ``frames``, all of one size, at a constant ``rate``; the file appears under its name when whole.

    ``encoder`` is FFmpeg's name of it. Raises SinkError where the file cannot be written.
    """
    part = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with av.open(f"file:{part}", "w") as container:
            stream = container.add_stream(encoder, rate=rate, options=dict(options))
            assert isinstance(stream, av.VideoStream)
            stream.pix_fmt = pixel_format
            for index, frame in enumerate(frames):
                if index == 0:
                    stream.width, stream.height = frame.width, frame.height
                frame.pts, frame.time_base, frame.pict_type = index, 1 / rate, 0  # 0: the encoder chooses
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
        part.replace(path)
    except (OSError, FFmpegError) as error:
        raise SinkError(f"cannot make the clip {path}: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def grey_frame(luma: NDArray[np.uint8]) -> av.VideoFrame:
    """A colourless yuv420p frame of ``luma``, uint8[H, W] of even size."""
    height, width = luma.shape
    planes = np.full((height * 3 // 2, width), 128, np.uint8)
    planes[:height] = luma
    return av.VideoFrame.from_ndarray(planes, format="yuv420p")


def colour_frame(rgb: NDArray[np.uint8]) -> av.VideoFrame:
    """A yuv420p frame of ``rgb``, uint8[H, W, 3] of even sides."""
    return av.VideoFrame.from_ndarray(rgb, format="rgb24").reformat(format="yuv420p")


def looped(source: Path, target: Path, times: int) -> int:
    """Write the packets of ``source`` ``times`` times, one after the other in time. Returns the number of packets.

    Raises FFmpegError, and SourceError where there is no video in it.
    """
    written = 0
    with av.open(f"file:{target}", "w") as out:
        stream: av.VideoStream | None = None
        for turn in range(times):
            with av.open(f"file:{source}") as container:
                if not container.streams.video:
                    raise SourceError(f"{source}: no video stream")
                template = container.streams.video[0]
                stream = stream or out.add_stream_from_template(template)
                packets = [packet for packet in container.demux(template) if packet.size]
                length = sum(packet.duration or 0 for packet in packets)
                for packet in packets:
                    assert packet.pts is not None
                    packet.pts += turn * length
                    packet.dts = (packet.dts if packet.dts is not None else packet.pts) + turn * length
                    packet.stream = stream
                    out.mux(packet)
                    written += 1
    return written
