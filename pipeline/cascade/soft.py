"""Choosing K cells as a differentiable function of their values, for training a model that predicts those values.

The weights are w = sigmoid((v - c) / temperature), with the one threshold c for which they add up to K: the relaxation
of the best K cells with binary entropy as its penalty (Amos, Koltun and Kolter 2019, "The limited multi-label
projection layer"). As the temperature falls they become 1 on the K best cells and 0 elsewhere.
"""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def soft_top_k(values: Values, count: int, temperature: float) -> Values:
    """Weights float64[N] in [0, 1] that add up to ``count``, greater for greater values.

    ``values`` is [N], finite. Raises ValueError for a temperature that is not positive, or a count outside 0..N.
    """
    values = np.asarray(values, np.float64)
    if not temperature > 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if not 0 <= count <= len(values):
        raise ValueError(f"count must be between 0 and {len(values)}, the number of values, got {count}")
    if count in (0, len(values)):
        return np.full(len(values), float(count > 0))
    scaled = values / temperature
    return _sigmoid(scaled - _threshold(scaled, count))


def soft_top_k_gradient(weights: Values, temperature: float, upstream: Values) -> Values:
    """The gradient by the values, float64[N], from ``upstream``, that by the weights which soft_top_k gave for them.

    With g = w (1 - w) / temperature, dw_i/dv_j = g_i (i = j) - g_i g_j / sum(g): the threshold moves as well.
    """
    slope = weights * (1 - weights) / temperature
    total = slope.sum()
    if total == 0:
        return np.zeros_like(slope)
    return np.asarray(slope * (upstream - (slope * upstream).sum() / total))


def _threshold(scaled: Values, count: int) -> float:
    """c with sum(sigmoid(scaled - c)) = count, by bisection; a hundred steps reach float64 precision from any start."""
    reach = np.log(len(scaled)) + 1  # there the sum is surely below 1, or above N - 1
    low, high = float(scaled.min() - reach), float(scaled.max() + reach)
    for _ in range(100):
        middle = (low + high) / 2
        if _sigmoid(scaled - middle).sum() > count:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _sigmoid(values: Values) -> Values:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * values)))
