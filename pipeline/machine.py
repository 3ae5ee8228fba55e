"""This machine and its video libraries, as plain data for ``foveate doctor`` and the records of benchmarks."""

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Literal

_DECODERS: Final = ("h264", "hevc", "vp9", "av1")
_ENCODERS: Final = ("libx264", "libopenh264", "mpeg4")


def system() -> dict[str, Any]:
    """Interpreter, operating system, processor, memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "foveate": metadata.version("foveate"),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": cores,
        "memory_gib": _memory(),
    }


def video() -> dict[str, Any]:
    """What PyAV's own FFmpeg can read and write."""
    import av

    return {
        "pyav": av.__version__,
        "ffmpeg": getattr(av, "ffmpeg_version_info", "unknown"),
        "decoders": {name: _has_codec(name, "r") for name in _DECODERS},
        "encoders": {name: _has_codec(name, "w") for name in _ENCODERS},
    }


def arrays() -> dict[str, Any]:
    """OpenCV's threads and the processor features that it uses."""
    import cv2
    import numpy as np

    features = cv2.getCPUFeaturesLine()
    return {
        "numpy": np.__version__,
        "opencv": cv2.__version__,
        "threads": cv2.getNumThreads(),
        "features": [name for name in features.replace("*", "").split() if not name.endswith("?")],
    }


def text_of(path: Path) -> str:
    """A file of the system; empty where it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _has_codec(name: str, mode: Literal["r", "w"]) -> bool:
    import av

    try:
        av.codec.Codec(name, mode)
    except ValueError:  # PyAV's UnknownCodecError
        return False
    return True


def _processor() -> str:
    names = re.search(r"^model name\s*:\s*(.+)$", text_of(Path("/proc/cpuinfo")), re.MULTILINE)
    return names[1] if names else platform.processor() or platform.machine()


def _memory() -> float | None:
    """GiB that this process may use: the machine's, or less where a control group says so."""
    machine = re.search(r"^MemTotal:\s*(\d+) kB", text_of(Path("/proc/meminfo")), re.MULTILINE)
    limit = text_of(Path("/sys/fs/cgroup/memory.max")).strip()
    amounts = [int(machine[1]) * 1024] if machine else []
    amounts += [int(limit)] if limit.isdigit() else []
    return round(min(amounts) / 2**30, 1) if amounts else None
