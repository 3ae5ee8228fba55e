"""How far two rankings of the cells agree."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

TOP: Final = 273  # cells: the usual budget


def agreement(one: NDArray[Any], other: NDArray[Any]) -> tuple[float, float, float]:
    """Of two maps [cells]: Spearman's rank correlation, and the shares of the top 273 and the top tenth in common.

    Ties go by the cell's number.
    """
    places = [np.argsort(np.argsort(-values, kind="stable")) for values in (one, other)]
    tops = (min(TOP, len(one)), max(len(one) // 10, 1))
    shares = [float(np.mean(places[1][places[0] < most] < most)) for most in tops]
    return float(np.corrcoef(places[0], places[1])[0, 1]), shares[0], shares[1]
