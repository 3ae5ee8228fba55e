"""Decay per frame of the maps that are kept from frame to frame."""

from typing import Final

FIXATION_KEEP: Final = 0.9
ATTENTION_KEEP: Final = 0.9
GAZE_KEEP: Final = 0.9
