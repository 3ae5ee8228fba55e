"""The overlay's video file: H.264 that browsers play, at the frames' true times."""

import logging
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace
from numpy.typing import NDArray

from foveate.pipeline.sinks.header import version

log = logging.getLogger(__name__)

_TIME_BASE: Final = Fraction(1, 90_000)  # seconds per tick, the usual clock of video
_LIMITED, _BT709 = 1, 1  # the codes of ITU-T H.273 as FFmpeg numbers them
_CONTAINERS: Final = {".mp4": "mp4", ".mov": "mov", ".mkv": "matroska"}
# Best first. Four threads everywhere, because the bytes depend on their number; no B-frames, because a fragmented
# MP4 would show the pictures as late as they are reordered.
_ENCODERS: Final = {
    "libx264": {"preset": "superfast", "crf": "21", "bf": "0", "threads": "4"},
    "libopenh264": {"b": "8M", "threads": "4"},
    "mpeg4": {"qscale": "4", "threads": "1"},
}
_COMPACT: Final = {"libx264": {"preset": "veryfast", "crf": "30"}, "libopenh264": {"b": "2M"}, "mpeg4": {"qscale": "9"}}
# Fragments of about a second while it grows, so that it plays even after kill -9; a plain MP4 once it is closed.
_MOVFLAGS: Final = "+hybrid_fragmented+frag_keyframe+empty_moov+default_base_moof"


class VideoFile:
    """Encodes pictures of one size. Raises OSError (PyAV's errors are such) wherever the file cannot be written.

    ``compact``: about a quarter of the bytes, for what is to travel in a page.
    """

    def __init__(self, path: Path, width: int, height: int, fps: float | None, *, compact: bool = False) -> None:
        encoder = _encoder()
        kind = _CONTAINERS[path.suffix.lower()]
        options = {"flush_packets": "1", "fflags": "+bitexact"} | (
            {} if kind == "matroska" else {"movflags": _MOVFLAGS}
        )
        # "file:" keeps a colon in the name from being taken for a protocol.
        self._container = av.open(f"file:{path}", "w", format=kind, options=options)
        self._container.metadata["comment"] = f"Foveate {version()}, {encoder}"
        rate = Fraction(fps or 25.0).limit_denominator(1001)
        quality = _ENCODERS[encoder] | (_COMPACT[encoder] if compact else {})
        stream = self._container.add_stream(encoder, rate=rate, options=quality)
        assert isinstance(stream, av.VideoStream)
        self._stream = stream
        self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        context = self._stream.codec_context
        context.time_base = _TIME_BASE
        context.gop_size = min(max(round(rate), 1), 60)
        context.color_range, context.colorspace = _LIMITED, _BT709
        context.color_primaries, context.color_trc = _BT709, _BT709
        self._container.start_encoding()  # creates the file, so that errors show before any work is done
        self._last = -1

    def write(self, picture: NDArray[np.uint8], seconds: float) -> None:
        """Encode one picture uint8[height, width, 3], R'G'B', shown from ``seconds`` on."""
        frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
        frame = frame.reformat(format="yuv420p", dst_colorspace=Colorspace.ITU709, dst_color_range=ColorRange.MPEG)
        self._last = max(self._last + 1, round(seconds / _TIME_BASE))
        frame.pts, frame.time_base = self._last, _TIME_BASE
        self._container.mux(self._stream.encode(frame))

    def close(self) -> None:
        """Write what the encoder still holds, and the file's end."""
        try:
            self._container.mux(self._stream.encode())
        finally:
            self._container.close()


def _encoder() -> str:
    """The best encoder there is; a warning where it is not H.264's usual one."""
    for name in _ENCODERS:
        if name in av.codecs_available:
            if name != "libx264":
                log.warning("no libx264 in PyAV's FFmpeg: the overlay is encoded with %s", name)
            return name
    raise OSError(f"PyAV's FFmpeg has none of the encoders {', '.join(_ENCODERS)}")
