"""The rate of an RTSP stream, which FFmpeg finds out only where its parser joins the pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

from av.packet import Packet
from av.video.stream import VideoStream

_FIRST: Final = 4  # pictures that are looked at
_SLOW: Final = 0.25  # seconds between two pictures that are enough, so that nothing waits for many slow ones
_ALIKE: Final = 0.1  # of a rate, by which what is told may differ from what is seen


def told_rate(stream: VideoStream) -> float | None:
    """Pictures a second by the session description, or else by the stream's parameter sets; None: not told."""
    told = stream.average_rate or stream.codec_context.framerate
    return float(told) if told and 0 < told <= 1000 else None


def first_pictures(packets: Iterable[Packet[VideoStream]], tick: Fraction) -> list[Packet[VideoStream]]:
    """So many that their timestamps show a rate.

    The first one's is removed where the second has it too: FFmpeg makes no difference between 0 and no timestamp.
    """
    first: list[Packet[VideoStream]] = []
    for packet in packets:
        first.append(packet)
        stamps = [each.pts for each in first if each.pts is not None]
        if len(first) == _FIRST or (len(stamps) > 1 and (stamps[-1] - stamps[-2]) * tick > _SLOW):
            break
    if len(first) > 1 and first[0].pts == first[1].pts:
        first[0].pts = None
    return first


def seen_rate(first: Sequence[Packet[VideoStream]], tick: Fraction, told: float | None) -> float | None:
    """``told``, where the first pictures do not show that it is wrong."""
    stamps = [packet.pts for packet in first if packet.pts is not None]
    if len(stamps) < 2 or any(after <= before for before, after in pairwise(stamps)):  # reordered, or without a clock
        return told
    seen = float((len(stamps) - 1) / ((stamps[-1] - stamps[0]) * tick))
    return told if told is not None and abs(told / seen - 1) < _ALIKE else round(seen, 3)
