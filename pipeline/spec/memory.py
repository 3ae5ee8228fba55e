"""Maps that are carried from frame to frame: what is kept of them per frame."""

from typing import Final

FIXATION_KEEP: Final = 0.9
ATTENTION_KEEP: Final = 0.9
GAZE_KEEP: Final = 0.9
