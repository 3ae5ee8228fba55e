"""The dense inverse search of the card, and what both engines make of its confidence."""

from typing import Final

PATCH: Final = 8
"""Samples along a patch that is searched for."""
STEPS: Final = 8
"""At most, per level."""
LEAST_STEP: Final = 0.04
"""Samples; a smaller step ends the search."""
LEAST_DETAIL: Final = 16.0
"""Determinant of the gradients' sums below which nothing can be followed."""
DOUBT: Final = 0.125
"""Confidence lost per grey value by which the warped picture differs from the new one. Half of it is lost at 4, about
the change threshold; of pure noise, three cells in four are then recomputed, of real clips one in twenty."""
