"""Frames per second of a 1080p file by its codec, to tokens, beside decoding alone:

python -m foveate.bench.gpu.codecs --out gpu_codecs.json

The sample pedestrians is enlarged and encoded here, by PyAV. ``hardware``: bare decoding by the card, where that can;
``cpu``: by FFmpeg's decoder, with a thread for each core; ``pipeline``: all of ``foveate run``, by whichever decodes
there. AV1's film grain is put on the pictures by whoever decodes them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final

import av
from tyro.conf import arg

from foveate.bench.case import RedCheckError
from foveate.bench.clips.encoding import encode
from foveate.bench.clips.samples import sample_clips
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.gpu.bare import decode_bare
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.decode.limits import capabilities
from foveate.cuda.driver.device import Device
from foveate.pipeline import open_stream
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources import open_source

_TURNS: Final = 3
_SVT: Final = {"preset": "10", "crf": "35"}
_GRAIN: Final = {**_SVT, "svtav1-params": "film-grain=20"}
_X265: Final = {"preset": "ultrafast", "x265-params": "log-level=none"}
_VP9: Final = {"deadline": "realtime", "cpu-used": "8", "crf": "35", "b": "0", "row-mt": "1"}


@dataclass(frozen=True, slots=True)
class Coding:
    """How a clip is encoded."""

    name: str
    codec: str  # NVIDIA's name
    encoder: str
    pixel_format: str
    options: Mapping[str, str]


CODINGS: Final = (
    Coding("H.264", "H264", "libx264", "yuv420p", {"preset": "veryfast"}),
    Coding("HEVC", "HEVC", "libx265", "yuv420p", _X265),
    Coding("HEVC, 10 bits", "HEVC", "libx265", "yuv420p10le", _X265),
    Coding("VP9", "VP9", "libvpx-vp9", "yuv420p", _VP9),
    Coding("AV1", "AV1", "libsvtav1", "yuv420p", _SVT),
    Coding("AV1, film grain", "AV1", "libsvtav1", "yuv420p", _GRAIN),
    Coding("AV1, 10 bits", "AV1", "libsvtav1", "yuv420p10le", _SVT),
    Coding("AV1, 10 bits, film grain", "AV1", "libsvtav1", "yuv420p10le", _GRAIN),
)


def gpu_codecs(out: Out = None, frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 120) -> None:
    """Compare codecs: the card's decoder alone, with tokens, and decoding on the CPU."""
    check_least(1, frames=frames)
    record = new_record("gpu_codecs", out, frames=frames, width=WIDTH, height=HEIGHT)
    with Device() as device, TemporaryDirectory(prefix="foveate-bench-") as folder:
        record["card"] = device.name
        for number, coding in enumerate(CODINGS):
            clip = Path(folder) / f"{number}.mp4"
            encode(clip, enlarged(frames), Fraction(25), coding.options, coding.encoder, coding.pixel_format)
            case = _case(device, clip, coding, frames)
            record["cases"].append(case)
            speeds = ", ".join(f"{way} {case[f'{way}_fps']:.0f} fps" for way in _WAYS if f"{way}_fps" in case)
            say(f"{coding.name}: {speeds}; {case['decoded_on_cpu'] or 'decoded by the card'}")
    hand_out(record, out)


def enlarged(frames: int) -> Iterator[av.VideoFrame]:
    """The sample at 1920x1080."""
    (source,) = sample_clips("pedestrians")
    with av.open(f"file:{source.path}") as container:
        for _, frame in zip(range(frames), container.decode(video=0), strict=False):
            yield frame.reformat(WIDTH, HEIGHT)


def _by_cpu(clip: Path) -> int:
    with closing(open_source(str(clip), SourceSettings())) as source:
        return sum(1 for _ in source)


def _to_tokens(clip: Path) -> int:
    with open_stream(str(clip), engine="cuda") as stream:
        return sum(1 for _ in stream)


_WAYS: Final[Mapping[str, Callable[[Path], int]]] = {
    "hardware": lambda clip: decode_bare(str(clip)),
    "cpu": _by_cpu,
    "pipeline": _to_tokens,
}


def _case(device: Device, clip: Path, coding: Coding, frames: int) -> dict[str, Any]:
    """Medians of turns, from opening the file to its end; raises RedCheckError unless each way sees all frames.

    ``limits``: sizes in pixels that the card decodes, None: it does not decode this.
    """
    limits = capabilities(device.index, coding.codec, 10 if "10" in coding.pixel_format else 8)
    ways = {way: count for way, count in _WAYS.items() if limits or way != "hardware"}
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for turn in range(_TURNS + 1):
        for way, count in ways.items():
            began = time.perf_counter()
            seen = count(clip)
            if seen != frames:
                raise RedCheckError(f"{coding.name}, {way}: {seen} of {frames} frames")
            if turn:  # the first one compiles and loads the kernels
                seconds[way].append(time.perf_counter() - began)
    with open_stream(str(clip), engine="cuda") as stream:
        decoded_on_cpu = stream.info.decoded_on_cpu
    return {
        "name": coding.name,
        **{f"{way}_fps": frames / median(each) for way, each in seconds.items()},
        "encoder": coding.encoder,
        "pixel_format": coding.pixel_format,
        "bytes": clip.stat().st_size,
        "limits": limits and asdict(limits),
        "decoded_on_cpu": decoded_on_cpu,
        "samples": {f"{way}_s": each for way, each in seconds.items()},
    }


if __name__ == "__main__":
    run_module(gpu_codecs)
