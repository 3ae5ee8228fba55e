"""Small videos whose pictures show their number: bit k is the brightness of columns 16k to 16k + 15."""

from pathlib import Path

from foveate.pipeline.frames import Frame
from tests.pipeline.made_sources import ffmpeg

CODED = (
    "color=gray:s=128x64:r={rate},format=yuv420p,"
    r"geq=lum='if(mod(floor((N+{first})/pow(2\,floor(X/16)))\,2)\,235\,16)':cb=128:cr=128"
)


def pictures(first: int = 0, rate: object = 30) -> list[str]:
    """Arguments that make numbered pictures the next input."""
    return ["-f", "lavfi", "-i", CODED.format(first=first, rate=rate)]


def coded(path: Path, *options: object, first: int = 0, count: int = 30) -> Path:
    """A video in H.264 of numbered pictures; ``options`` come last."""
    codec = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bf", 0]
    ffmpeg(*pictures(first), "-frames:v", count, *codec, *options, path)
    return path


def number(frame: Frame) -> int:
    """The number that a picture shows, modulo 256."""
    return sum(int(frame.luma[32, 16 * bit + 8] > 126) << bit for bit in range(8))
