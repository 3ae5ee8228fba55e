"""What cells are like, for queries in plain words."""

from typing import Final

COLOURS: Final = 11
"""Named colours."""
COLOUR_LEVEL: Final = 2
"""Level of the pictures that colours are named from."""
STROKE_LEVEL: Final = 1
"""Level of the luma that strokes of letters are looked for in."""
WIDEST_STROKE: Final = 5
"""Samples of STROKE_LEVEL between the two edges of a stroke, at most."""
BACKGROUND_LEVEL: Final = 2
"""Level of the learned background."""
