"""Intervals, against values worked out by hand or taken from printed tables."""

import math

import pytest

from foveate.bench.records.interval import batch_means, paired_interval, ratio_interval, student_t


@pytest.mark.parametrize(("freedom", "quantile"), [(1, 12.706), (2, 4.303), (9, 2.262), (30, 2.042), (31, 1.96)])
def test_students_quantiles(freedom: float, quantile: float) -> None:
    assert student_t(freedom) == pytest.approx(quantile, abs=0.001)


def test_batches_are_runs_of_neighbours() -> None:
    assert batch_means([1, 2, 3]) == [1, 2, 3]
    assert batch_means(list(range(20))) == [0.5 + 2 * place for place in range(10)]
    assert batch_means([]) == []


def test_a_mean_difference() -> None:
    # Mean 2, deviation 1, three values: 4.303 / sqrt(3) = 2.484 either way.
    assert paired_interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 2.484, 2 + 2.484), abs=0.001)
    assert paired_interval([1.0]) is None


def test_a_ratio_of_times() -> None:
    before, after = [1.0, math.e], [math.e, math.e**2]
    # Logarithms 0, 1 and 1, 2: variances 1/2, so a spread of 1/4 + 1/4 with 2 degrees: 4.303 * 0.7071 = 3.043.
    assert ratio_interval(before, after) == pytest.approx((math.exp(1 - 3.043), math.exp(1 + 3.043)), rel=0.002)
    assert ratio_interval([2.0, 2.0], [3.0, 3.0]) == pytest.approx((1.5, 1.5))
    assert ratio_interval([1.0], [1.0, 2.0]) is None
