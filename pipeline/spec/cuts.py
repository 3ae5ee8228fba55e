"""What tells a scene cut: the structure of a picture."""

from typing import Final

CUT_PLAIN: Final = 0.75
"""Grey values: a picture whose cells differ from the mean of their tile by less, root mean square, shows nothing."""
