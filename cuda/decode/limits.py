"""What the hardware decodes, as NVIDIA's video library tells: within the context that the thread holds.

PyNvVideoCodec would tell the same, but makes a context of its own for it, which takes longer than opening a video.
"""

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Final

LIBRARY: Final = "libnvcuvid.so.1"
_CODECS: Final = {"H264": 4, "HEVC": 8, "VP9": 10, "AV1": 11}  # cudaVideoCodec
_CHROMA: Final = 1  # cudaVideoChromaFormat_420


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in pixels that the hardware decodes."""

    min_width: int
    min_height: int
    max_width: int
    max_height: int


class _Capabilities(ctypes.Structure):
    """CUVIDDECODECAPS of cuviddec.h, NVIDIA Video Codec SDK 13."""

    _fields_ = (
        ("codec", ctypes.c_int),
        ("chroma", ctypes.c_int),
        ("depth_minus_8", ctypes.c_uint),
        ("_reserved", ctypes.c_uint * 3),
        ("supported", ctypes.c_ubyte),
        ("decoders", ctypes.c_ubyte),
        ("formats", ctypes.c_ushort),
        ("max_width", ctypes.c_uint),
        ("max_height", ctypes.c_uint),
        ("max_blocks", ctypes.c_uint),
        ("min_width", ctypes.c_ushort),
        ("min_height", ctypes.c_ushort),
        ("_histogram", ctypes.c_ubyte * 4),
        ("_reserved_too", ctypes.c_uint * 10),
    )


@cache
def capabilities(gpu: int, codec: str, depth: int) -> Limits | None:
    """What GPU number ``gpu``, whose context this thread holds, can do with 4:2:0 video of a codec and so many bits.

    None: nothing. ``library_problem`` must be None.
    """
    told = _Capabilities(codec=_CODECS[codec], chroma=_CHROMA, depth_minus_8=depth - 8)
    if ctypes.CDLL(LIBRARY).cuvidGetDecoderCaps(ctypes.byref(told)) or not told.supported:
        return None
    return Limits(told.min_width, told.min_height, told.max_width, told.max_height)
