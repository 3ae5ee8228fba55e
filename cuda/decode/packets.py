"""Packets in the form that the hardware takes.

PyNvVideoCodec's own demultiplexer keeps the interpreter's lock while it reads, PyAV's lets go of it for each packet:
where several files are decoded at once, waiting for it again takes far longer than the reading. But the former says
neither which pictures are not to be shown, nor why it stopped; so it reads only files whose index tells all of that,
and where it ends before the index does, PyAV's goes on.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from av.error import FFmpegError
from av.packet import Packet

from foveate.cuda.decode.annex_b import AnnexB
from foveate.pipeline.frames import Damage
from foveate.pipeline.sources.container import ContainerFeed
from foveate.pipeline.sources.decoding import reason_of, record_damage

_ANNEX_B: Final = {"h264", "hevc"}
_NO_TIME: Final = -(1 << 63)  # AV_NOPTS_VALUE
_NOTHING: Final = np.zeros(1, np.uint8)


class Coded(NamedTuple):
    """One packet. ``data`` is valid until the next one is asked for."""

    data: Any  # PyNvVideoCodec.PacketData
    ticks: int  # its picture's timestamp
    duration: int  # ticks; 0 where it is not known
    shown: bool  # False: its picture is decoded but not to be shown


def packets(feed: ContainerFeed, damage: Damage) -> Iterator[Coded]:
    """All packets of ``feed`` in decoding order; what is lost on the way is recorded in ``damage``."""
    demuxer = _trusted(feed)
    if demuxer is None:
        yield from _by_pyav(feed, damage)
        return
    count, reached = 0, _NO_TIME
    for packet in _until_it_fails(demuxer):
        count += 1
        reached = packet.dts
        yield Coded(packet, packet.pts, packet.duration, True)
    if count < len(feed.index or ()):
        yield from _by_pyav(feed, damage, reached)


def flush() -> Any:
    """The PacketData behind the last one."""
    return _packet_data(_NOTHING, 0, 0)


def _trusted(feed: ContainerFeed) -> Any:
    """PyNvVideoCodec's demultiplexer; None where it cannot be trusted with this file."""
    if feed.index is None or any(entry.is_discard for entry in feed.index) or feed.shortfall():
        return None
    library = importlib.import_module("PyNvVideoCodec")
    try:
        demuxer = library.CreateDemuxer(filename=str(feed.path.absolute()))
        base = demuxer.GetTimebaseNum(), demuxer.GetTimebaseDen()
        same = demuxer.GetVideoStreamId() == feed.stream.index and base == feed.time_base.as_integer_ratio()
    except (RuntimeError, UnicodeError, library.PyNvVCException):
        return None
    return demuxer if same else None


def _until_it_fails(demuxer: Any) -> Iterator[Any]:
    try:
        for packet in demuxer:
            if not packet.bsl or _NO_TIME in (packet.pts, packet.dts):
                return
            yield packet
    except RuntimeError:
        return


def _by_pyav(feed: ContainerFeed, damage: Damage, reached: int = _NO_TIME) -> Iterator[Coded]:
    """The packets behind the decoding time ``reached``, in ticks."""
    in_form, ticks = _converter(feed), 0
    try:
        for packet in feed.packets():
            if not packet.size or (packet.dts is not None and packet.dts <= reached):
                continue
            ticks = _ticks(packet, ticks + 1)
            try:
                buffer = np.frombuffer(in_form(bytes(packet)), np.uint8)
            except ValueError as error:  # what it holds is no picture
                record_damage(damage, f"a picture could not be decoded: {error}")
                continue
            yield Coded(_packet_data(buffer, len(buffer), ticks), ticks, packet.duration or 0, not packet.is_discard)
    except FFmpegError as error:
        record_damage(damage, f"reading stopped: {reason_of(error)}")


def _converter(feed: ContainerFeed) -> Callable[[bytes], bytes]:
    decoder = feed.decoder
    return AnnexB(decoder.name, decoder.extradata or b"").convert if decoder.name in _ANNEX_B else bytes


def _ticks(packet: Packet[Any], otherwise: int) -> int:
    if packet.pts is not None:
        return packet.pts
    return otherwise if packet.dts is None else packet.dts


def _packet_data(buffer: Any, size: int, ticks: int) -> Any:
    """A PacketData that points into ``buffer``."""
    packet = importlib.import_module("PyNvVideoCodec").PacketData()
    packet.bsl = size
    packet.bsl_data = buffer.ctypes.data
    packet.pts = ticks
    return packet
