"""Kinds of keyframes."""

from enum import IntEnum


class Keyframe(IntEnum):
    """As numbers, on the card."""

    NONE = 0
    FIRST = 1
    PERIODIC = 2
    CUT = 3
    SIZE = 4
    DISCONTINUITY = 5
