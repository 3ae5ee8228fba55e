"""The histogram of latencies, as Prometheus wants it."""

import pytest

from foveate.app.live.latency import BOUNDS, Latencies


def test_each_bucket_counts_all_that_took_no_longer() -> None:
    latencies = Latencies()
    for seconds in (0.0004, 0.004, 0.004, 0.01, 7.0):
        latencies.add(seconds)
    cumulative, total = latencies.histogram()
    expected = {0.0005: 1, 0.001: 1, 0.0025: 1, 0.005: 3, 0.01: 4, 5.0: 4}
    assert {bound: cumulative[BOUNDS.index(bound)] for bound in expected} == expected
    assert cumulative[-1] == 5
    assert total == pytest.approx(7.0184)
    assert latencies.percentile(50) == 0.004
