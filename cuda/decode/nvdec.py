"""NVIDIA's hardware decoder, through PyNvVideoCodec: packets in, pictures in device memory out."""

import ctypes
import importlib
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

from foveate.cuda.decode.limits import LIBRARY, capabilities
from foveate.cuda.decode.pictures import Picture, PictureCopies
from foveate.cuda.driver.device import Device, gpu_problem
from foveate.cuda.driver.graph import no_capture
from foveate.pipeline.extras import install_command

_LIBRARIES: Final = (LIBRARY, "libnvidia-encode.so.1")  # the second is loaded even for decoding
_CODECS: Final = {"h264": "H264", "hevc": "HEVC", "vp9": "VP9"}
"""Codecs, and the hardware's names of them. AV1 is not among them: it could not be tested, as no H200 decodes it."""
_making = threading.Lock()
"""Held while a decoder is made. A card makes about 15 a second, however many ask at once; one behind the other, the
first can begin with their work."""
_DEPTHS: Final = {"yuv420p": 8, "yuvj420p": 8, "yuv420p10le": 10}
"""Bits of the pixel formats that are left to the hardware."""


def codec_problem(codec: str, pixel_format: str, width: int, height: int, gpu: int = 0) -> str | None:
    """Why the hardware cannot decode this, or None where it can. Ends no process, whatever the driver's state."""
    if codec not in _CODECS:
        return f"the hardware decoder is not used for {codec}"
    if pixel_format not in _DEPTHS:
        return f"the hardware decoder is not used for pixel format {pixel_format}"
    if width % 2 or height % 2:
        return f"the hardware decoder is not used for odd sizes such as {width}x{height}, which it rounds up"
    problem = gpu_problem() or library_problem()
    if problem:
        return problem
    with Device(gpu):
        limits = capabilities(gpu, _CODECS[codec], _DEPTHS[pixel_format])
    if limits is None:
        return f"this GPU does not decode {codec} with {_DEPTHS[pixel_format]} bits"
    if not (limits.min_width <= width <= limits.max_width and limits.min_height <= height <= limits.max_height):
        least, most = f"{limits.min_width}x{limits.min_height}", f"{limits.max_width}x{limits.max_height}"
        return f"this GPU decodes {codec} from {least} to {most} pixels, and the video has {width}x{height}"
    return None


def library_problem() -> str | None:
    """Why PyNvVideoCodec cannot work, or None. Looks before importing it: without a driver it ends the process."""
    for library in _LIBRARIES:
        try:
            ctypes.CDLL(library)
        except OSError:
            return f"the driver's video library {library} is missing or does not load"
    try:
        importlib.import_module("PyNvVideoCodec")
    except ImportError as error:
        return f"PyNvVideoCodec cannot be imported ({error}): {install_command('cuda')}"
    return None


def report() -> dict[str, Any]:
    """Whether the engine can run here, and what the hardware decodes, as plain data: for ``foveate doctor``."""
    problem = gpu_problem()
    if problem:
        return {"problem": problem, "decoding": None, "decodes": {}}
    missing = library_problem()
    found: dict[str, str] = {}
    with Device() as device:
        for codec in () if missing else sorted(set(_CODECS.values())):
            for depth in sorted(set(_DEPTHS.values())):
                limits = capabilities(device.index, codec, depth)
                if limits is not None:
                    found[f"{codec} {depth}-bit"] = f"{limits.max_width}x{limits.max_height}"
    return {"problem": None, "decoding": missing, "decodes": found}


class Nvdec:
    """Decodes one stream packet by packet. Made, used and closed by the thread that owns the GPU."""

    def __init__(self, device: Device, codec: str, at_once: bool = False) -> None:
        """``codec`` is one for which ``codec_problem`` is None. Raises PyNvVideoCodec's errors.

        ``at_once``: each packet holds one whole picture, and pictures are shown in the order of the packets; so each
        comes out at its packet.
        """
        nvc = _library()
        latency = nvc.DisplayDecodeLatencyType
        self._copies = PictureCopies(device)
        self._began = False
        with no_capture():
            self._decoder: Any = nvc.CreateDecoder(
                gpuid=device.index,
                codec=getattr(nvc.cudaVideoCodec, _CODECS[codec]),
                cudacontext=device.context_handle,
                cudastream=self._copies.stream,
                usedevicememory=True,
                latency=latency.LOW if at_once else latency.NATIVE,
            )

    def decode(self, packet: Any) -> Iterator[Picture]:
        """The pictures that one PacketData in Annex B form brings to light; behind the last one, an empty one does."""
        frames = self._decoder.Decode(packet) if self._began else self._first(packet)
        for frame in frames:
            yield self._copies.own(frame)

    def _first(self, packet: Any) -> Any:
        """The first packet, at which the library allocates all that the decoder needs."""
        with _making, no_capture():
            self._began = True
            return self._decoder.Decode(packet)

    def close(self) -> None:
        """Release the decoder; pictures that are still held stay valid."""
        self._copies.finish()
        with no_capture():
            self._decoder = None
        self._copies.close()


def decoder_errors() -> tuple[type[Exception], ...]:
    """What PyNvVideoCodec raises: its own exceptions are no RuntimeErrors, and those of its bindings are."""
    return RuntimeError, _library().PyNvVCException


def _library() -> ModuleType:
    return importlib.import_module("PyNvVideoCodec")
