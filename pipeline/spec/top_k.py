"""What coarse-to-fine culling ranks cells by; see pipeline/cascade/top_k.py."""

from enum import IntEnum


class CellValue(IntEnum):
    """What a stage knows of a cell."""

    COARSE = 0
    """Of whole cells, as at level 4: saliency plus motion."""
    COARSE_DETAIL = 1
    """The same, plus the detail that level 3 adds."""
    SCORE = 2
    """The channels of the score belong to level 2."""
    SCORE_DETAIL_1 = 3
    """The score by the detail that level 1 adds."""
    SCORE_DETAIL_0 = 4
    """The score by the detail that level 0 adds."""
