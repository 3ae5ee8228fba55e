"""Keyframes decoded on the CPU, which shows what the pictures behind them are."""

from typing import Final

from av.codec.context import Flags
from av.error import FFmpegError
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from foveate.pipeline.sources.cropping import EXACT

NOT_WHOLE: Final = "a keyframe is not a whole picture"


def decoded_by_cpu(codec: str, keyframe: bytes) -> VideoFrame | None:
    """What FFmpeg's decoder makes of one keyframe that brings its parameter sets; None: nothing."""
    context = VideoCodecContext.create(codec, "r")
    assert isinstance(context, VideoCodecContext)
    context.flags |= Flags.low_delay | EXACT
    context.thread_count = 1
    try:
        frames = [*context.decode(Packet(keyframe)), *context.decode(None)]
    except FFmpegError:
        return None
    return frames[0] if frames else None
