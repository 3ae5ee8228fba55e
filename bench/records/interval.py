"""Confidence intervals: of a proportion, of a mean of paired differences, of a ratio of two times."""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log
from statistics import fmean, stdev, variance
from typing import Final

_Z: Final = 1.959964  # 95% of a normal distribution lie within so many deviations


def wilson(right: int, count: int) -> tuple[float, float]:
    """The 95% score interval of a share (Wilson, 1927), in [0, 1]; all of [0, 1] for a count of zero."""
    if count == 0:
        return 0.0, 1.0
    share, square = right / count, _Z * _Z
    scale = 1 + square / count
    middle = (share + square / (2 * count)) / scale
    reach = _Z / scale * (share * (1 - share) / count + square / (4 * count * count)) ** 0.5
    return max(0.0, min(share, middle - reach)), min(1.0, max(share, middle + reach))  # rounding aside, it holds it


_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)  # Student's t, 0.975 quantile, for 1 to 30 degrees of freedom
_BATCHES: Final = 10


def student_t(freedom: float) -> float:
    """Half the width of the central 95% of Student's distribution, in standard deviations; for at least 1 degree."""
    return _T[int(freedom) - 1] if freedom < len(_T) + 1 else _Z


def batch_means(values: Sequence[float]) -> list[float]:
    """Means of at most ten runs of consecutive values, of nearly equal length.

    Neighbouring samples resemble each other; means of long runs hardly do, so that an interval may take them as
    independent (Conway, 1963).
    """
    count = min(_BATCHES, len(values))
    cuts = [len(values) * place // count for place in range(count + 1)] if count else []
    return [fmean(values[low:high]) for low, high in pairwise(cuts)]


def paired_interval(differences: Sequence[float]) -> tuple[float, float] | None:
    """The 95% interval of the mean of ``differences``, which are in the order of time; None for fewer than two."""
    means = batch_means(differences)
    if len(means) < 2:
        return None
    reach = student_t(len(means) - 1) * stdev(means) / len(means) ** 0.5
    return fmean(means) - reach, fmean(means) + reach


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float] | None:
    """The 95% interval of mean ``after`` / mean ``before``, both positive, by their logarithms (Welch, 1947).

    None where one of them has fewer than two values.
    """
    logs = [batch_means([log(value) for value in values]) for values in (before, after)]
    if min(map(len, logs)) < 2:
        return None
    spreads = [variance(values) / len(values) for values in logs]
    middle, spread = fmean(logs[1]) - fmean(logs[0]), sum(spreads)
    if spread == 0:
        return exp(middle), exp(middle)
    parts = sum(part * part / (len(values) - 1) for part, values in zip(spreads, logs, strict=True))
    reach = student_t(max(1.0, spread * spread / parts)) * spread**0.5
    return exp(middle - reach), exp(middle + reach)
