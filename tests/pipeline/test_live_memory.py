"""Freed memory goes back to the system."""

import sys
from pathlib import Path

import pytest

from foveate.pipeline.live.connection import release_freed_memory


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_in_pieces_is_given_back():
    if "libc.so.6" not in Path("/proc/self/maps").read_text():
        pytest.skip("the C library is not glibc")

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    pieces = [bytearray(60_000) for _ in range(2_000)]  # below the size from which each is a mapping of its own
    last = bytearray(60_000)  # above them on the heap, so that freeing them does not shrink it by itself
    full = resident()
    del pieces
    release_freed_memory()
    assert full - resident() > 60_000_000
    assert len(last) == 60_000
