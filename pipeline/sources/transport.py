"""MPEG transport streams, where FFmpeg does not report what is in them (ISO/IEC 13818-1, 2.4.3)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

_SYNC: Final = 0x47  # first byte of a packet
_DISTANCES: Final = (188, 192, 204)  # from packet to packet: plain, M2TS, with parity
_WINDOW: Final = 1 << 22  # bytes that are searched at once
_VIDEO: Final = range(0xE0, 0xF0)  # stream_id of video (table 2-22)
_ADAPTED: Final = 0x20  # flag: an adaptation field comes before the payload

_Packets = NDArray[np.uint8]  # [N, 188]


def is_scrambled(path: Path, pid: int) -> bool:
    """Whether most packets of one PID, at the beginning of the file, are scrambled. Raises OSError."""
    packets = next(_windows(path, 0), None)
    if packets is None:
        return False
    own = packets[_pids(packets) == pid]
    return len(own) > 0 and bool((own[:, 3] >= 0x40).mean() > 0.5)


def successor(path: Path, pid: int, position: int) -> int | None:
    """The PID under which the video goes on behind a byte position, where ``pid`` ends; None if it does not.

    That is the first other one with video which was not there shortly before ``position``. Raises OSError.
    """
    before = next(_windows(path, max(0, position - _WINDOW), position), None)
    known = {pid} if before is None else {pid, *np.unique(_pids(before)).tolist()}
    for packets in _windows(path, position):
        pids = _pids(packets)
        begin = (packets[:, 1] & 0x40 != 0) & ~np.isin(pids, list(known))
        for number, packet in zip(pids[begin].tolist(), packets[begin], strict=True):
            if _begins_video(packet):
                return int(number)
    return None


def _begins_video(packet: _Packets) -> bool:
    """Whether the payload of a packet[188] is the beginning of a packet of a video stream."""
    at = 5 + int(packet[4]) if packet[3] & _ADAPTED else 4
    return packet[at : at + 3].tobytes() == b"\0\0\1" and at + 3 < len(packet) and int(packet[at + 3]) in _VIDEO


def _pids(packets: _Packets) -> NDArray[np.int32]:
    return (packets[:, 1].astype(np.int32) & 0x1F) << 8 | packets[:, 2]


def _windows(path: Path, start: int, stop: int | None = None) -> Iterator[_Packets]:
    """The packets of a part of the file, some MiB at a time; none where it is not in packets."""
    with path.open("rb") as file:
        file.seek(start)
        while content := file.read(_WINDOW if stop is None else stop - start):
            packets = _split(np.frombuffer(content, np.uint8))
            if packets is None:
                return
            yield packets
            if stop is not None:
                return


def _split(content: NDArray[np.uint8]) -> _Packets | None:
    for distance in _DISTANCES:
        for offset in np.flatnonzero(content[: 2 * distance] == _SYNC):
            count = (len(content) - int(offset)) // distance
            packets = content[offset : int(offset) + count * distance].reshape(count, distance)[:, :188]
            if count and (packets[:, 0] == _SYNC).mean() > 0.9:
                return packets
    return None
