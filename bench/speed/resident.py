"""Memory of a process."""

from __future__ import annotations

import re
from pathlib import Path


def resident(process: int | None = None) -> float:
    """MiB of a process in memory, of this one by default. Linux only."""
    found = re.search(r"VmRSS:\s*(\d+) kB", Path(f"/proc/{process or 'self'}/status").read_text())
    assert found is not None
    return int(found[1]) / 1024
