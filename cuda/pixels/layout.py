"""Which layer and component of the channel stack holds which channel."""

from typing import Final

from foveate.pipeline.channels import CHANNELS
from foveate.pipeline.geometry import TOP_LEVEL

SAMPLED: Final = (
    *("red", "green", "blue", "edges"),
    *("edges_inverted", "highpass", "lowpass", "motion"),
    *("saliency", "text", "x", "y"),
)
"""Channels made from pixels, kept at every level of the stack; but ``text``, made per cell, in its last level alone."""

_GRIDDED = [channel for channel in CHANNELS if channel.name not in SAMPLED]
GRIDDED: Final = tuple(channel.name for channel in sorted(_GRIDDED, key=lambda channel: channel.group == "embedding"))
"""Channels that exist on the Grid alone: only the stack's last level, which is the Grid, holds them."""

ORDER: Final = SAMPLED + GRIDDED
LAYERS: Final = len(ORDER) // 4


def place_of(name: str) -> tuple[int, int]:
    """Layer, and component 0..3 of its texels. Raises ValueError for an unknown channel."""
    return divmod(ORDER.index(name), 4)


def stack_levels(analysis_level: int) -> int:
    """Levels of the stack: from the analysis level to the Grid."""
    return TOP_LEVEL - analysis_level + 1
