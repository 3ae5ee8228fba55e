"""What tells a scene cut: the structure of a picture."""

from typing import Final

CUT_PLAIN: Final = 0.75
"""Grey values: a picture whose cells differ from the mean of their tile by less, root mean square, shows nothing."""
CUT_DISPLACED: Final = 0.5
"""Correlation of the structures of two frames from which on they show the same, one of them displaced."""
CUT_REACH: Final = 4
"""That part of the picture is the most that it may be displaced by."""
