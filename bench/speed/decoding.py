"""Bare decoding: what the pipeline's speed is compared with. Shares no code with the pipeline's sources."""

from itertools import islice
from pathlib import Path

import av


def decode_bare(path: Path, stream: int | None = None, frames: int | None = None) -> int:
    """Decode a file's video stream with FFmpeg's own choice of threads, convert nothing, and count the frames.

    ``stream`` counts the video streams from 0 (None: the best), ``frames`` is where to stop (None: at the end).
    Raises FFmpegError, and ValueError where the file has no such stream.
    """
    with av.open(f"file:{path}") as container:
        videos = container.streams.video
        best = container.streams.best("video") if stream is None else videos[stream] if stream < len(videos) else None
        if not isinstance(best, av.VideoStream):
            raise ValueError(f"{path.name} has no video stream {'' if stream is None else stream}".rstrip())
        best.thread_type = "AUTO"  # as the pipeline's source asks for
        return sum(1 for _ in islice(container.decode(best), frames))
