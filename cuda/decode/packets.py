"""Packets in the form that the hardware takes, read by PyAV."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
from av.error import FFmpegError
from av.packet import Packet

from foveate.cuda.decode.annex_b import AnnexB
from foveate.cuda.decode.formats import FormatWatch
from foveate.cuda.decode.geometry import GeometryWatch
from foveate.pipeline.frames import Damage
from foveate.pipeline.sources.beginning import is_encrypted
from foveate.pipeline.sources.coded import codec_of
from foveate.pipeline.sources.decoding import Feed, Packets, reason_of, record_damage

_ANNEX_B: Final = {"h264", "hevc"}
_NOTHING: Final = np.zeros(1, np.uint8)


class Coded(NamedTuple):
    """One packet. ``data`` is valid until the next one is asked for."""

    data: Any  # PyNvVideoCodec.PacketData
    ticks: int  # its picture's timestamp
    duration: int  # ticks; 0 where it is not known
    shown: bool  # False: its picture is decoded but not to be shown
    problem: str | None  # what it asks for that the hardware does not do
    keyframe: bool
    begins: bytes | None  # the packet itself, where pictures of another format begin


def packets(feed: Packets, damage: Damage) -> Iterator[Coded]:
    """The packets of ``feed`` in decoding order; what is lost on the way is recorded in ``damage``."""
    in_form, ticks = _converter(feed), 0
    watch, formats = GeometryWatch(feed.decoder.name), FormatWatch(codec_of(feed.decoder.name))
    try:
        for packet in feed.packets():
            if not packet.size:
                continue
            if is_encrypted(packet):
                record_damage(damage, "a picture is encrypted")
                continue
            ticks = _ticks(packet, ticks + 1)
            try:
                data = in_form(bytes(packet))
            except ValueError as error:  # what it holds is no picture
                record_damage(damage, f"a picture could not be decoded: {error}")
                continue
            coded = packet_data(data, ticks)
            begins = data if formats.changed(data) else None
            problem = watch.problem(data) or formats.problem
            yield Coded(coded, ticks, packet.duration or 0, not packet.is_discard, problem, packet.is_keyframe, begins)
    except FFmpegError as error:
        record_damage(damage, f"reading stopped: {reason_of(error)}")


def flush() -> Any:
    """The PacketData behind the last one."""
    return _pointing(_NOTHING, 0, 0)


def parameter_sets(feed: Feed) -> bytes:
    """What is told of the stream beside its packets, in Annex B form; b"" of other codecs. Raises ValueError."""
    decoder = feed.decoder
    return AnnexB(decoder.name, decoder.extradata or b"").parameter_sets if decoder.name in _ANNEX_B else b""


def _converter(feed: Packets) -> Callable[[bytes], bytes]:
    decoder = feed.decoder
    return AnnexB(decoder.name, decoder.extradata or b"").convert if decoder.name in _ANNEX_B else bytes


def _ticks(packet: Packet[Any], otherwise: int) -> int:
    if packet.pts is not None:
        return packet.pts
    return otherwise if packet.dts is None else packet.dts


def packet_data(data: bytes, pts: int, at_once: bool = False) -> Any:
    """A PacketData of what must stay alive as long as it is in use; ``at_once`` as for Nvdec."""
    packet = _pointing(np.frombuffer(data, np.uint8), len(data), pts)
    if at_once:
        packet.decode_flag = importlib.import_module("PyNvVideoCodec").VideoPacketFlag.ENDOFPICTURE
    return packet


def _pointing(buffer: Any, size: int, pts: int) -> Any:
    """A PacketData that points into ``buffer``."""
    packet = importlib.import_module("PyNvVideoCodec").PacketData()
    packet.bsl = size
    packet.bsl_data = buffer.ctypes.data
    packet.pts = pts
    return packet
