"""What a process holds: memory, threads, files and sockets. Linux only."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

STEADY: Final = {"host_mib": 16.0, "threads": 2.0, "descriptors": 3.0}
"""By how much what ``held`` names may differ between two moments where nothing grows: a connection that was given up
may still be there in one of them, since it ends with its last call into FFmpeg."""


def resident(process: int | None = None) -> float:
    """MiB of a process in memory, of this one by default."""
    found = re.search(r"VmRSS:\s*(\d+) kB", Path(f"/proc/{process or 'self'}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def held(process: int | None = None) -> dict[str, float]:
    """``host_mib``, ``threads`` and ``descriptors`` (open files and sockets) of a process, of this one by default."""
    folder = Path(f"/proc/{process or 'self'}")
    counts = {name: float(len(list((folder / name).iterdir()))) for name in ("task", "fd")}
    return {"host_mib": resident(process), "threads": counts["task"], "descriptors": counts["fd"]}


def growth(samples: Sequence[Mapping[str, float]], names: Iterable[str]) -> dict[str, float]:
    """By how much each is larger at the end than after a fifth of the samples."""
    early, last = samples[len(samples) // 5], samples[-1]
    return {name: last[name] - early[name] for name in names}
