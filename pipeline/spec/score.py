"""Weights of the channels in the score; see pipeline/cascade/scores.py."""

from typing import Final

INFORMATION_EDGES: Final = 0.4
INFORMATION_HIGHPASS: Final = 0.3
INFORMATION_DISTANCE: Final = 0.3
"""Of 1 - edge_distance."""
PERSPECTIVE_SALIENCY: Final = 0.6
PERSPECTIVE_MOTION: Final = 0.4
ECCENTRICITY_LOSS: Final = 0.5
"""Share of the perspective that is lost at full eccentricity."""
FOCUS_LOSS: Final = 0.5
"""Weight that participation moves from perspective to information at most."""
