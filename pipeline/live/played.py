"""Which pictures were brought already. HLS begins each connection with its last segments, whether or not they are new.

Without this, a playlist that nobody adds to any more would pass for a stream, by a new connection again and again.
"""

from __future__ import annotations

import zlib
from collections import deque

from av.video.frame import VideoFrame

_MOST = 4096  # pictures that are remembered, more than a playlist's last segments hold
_BYTES = 65_536  # of a picture that are compared, in its middle

Key = tuple[float, int]


class Played:
    """The pictures of a connection and of those before it, by the sender's time and what they show."""

    def __init__(self, earlier: Played | None = None) -> None:
        self._keys: deque[Key] = deque(maxlen=_MOST) if earlier is None else earlier._keys.copy()
        self._earlier = frozenset(self._keys)

    def again(self, stamp: float | None, picture: VideoFrame) -> bool:
        """Whether an earlier connection brought the picture, with ``stamp`` in seconds. Notes it if not."""
        if stamp is None:
            return False
        luma = memoryview(picture.planes[0])
        begin = max(0, (luma.nbytes - _BYTES) // 2)
        key = stamp, zlib.crc32(luma[begin : begin + _BYTES])
        if key in self._earlier:
            return True
        self._keys.append(key)
        return False
