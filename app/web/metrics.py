"""The metrics in Prometheus' text format."""

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from foveate.app.live.latency import BOUNDS, Histogram
from foveate.app.web.shown import ShownSource
from foveate.pipeline.live.status import State

_COUNTERS = {
    "received": "Pictures received and decoded.",
    "dropped": "Pictures dropped because processing was too slow.",
    "skipped": "Pictures skipped during a pause, or because they came before the decoder was ready.",
    "damaged": "Pictures or packets that could not be decoded.",
    "connections": "Connections that led to a picture.",
    "records": "Frames whose tokens were chosen.",
    "tokens": "Tokens chosen.",
}
_LABELS = ("source", "name")


class _Sources(Collector):
    def __init__(self, sources: Sequence[ShownSource]) -> None:
        self._sources = sources

    def collect(self) -> Iterator[Metric]:
        """One family of metrics after the other, each with all sources."""
        statuses = [source.status() for source in self._sources]
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"foveate_{name}", text, labels=_LABELS)
            for status in statuses:
                counter.add_metric(_labels(status), status[name])
            yield counter
        yield from _gauges(statuses)
        yield self._latency(statuses)

    def _latency(self, statuses: Sequence[dict[str, Any]]) -> Metric:
        family = HistogramMetricFamily("foveate_latency_seconds", "From arrival to tokens.", labels=_LABELS)
        for source, status in zip(self._sources, statuses, strict=True):
            histogram = source.latencies()
            family.add_metric(_labels(status), _buckets(histogram), histogram.total)
        return family


def _labels(status: dict[str, Any]) -> list[str]:
    return [str(status["number"]), status["name"]]


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    return list(zip([*map(str, BOUNDS), "+Inf"], map(float, histogram.cumulative), strict=True))


def _gauges(statuses: Sequence[dict[str, Any]]) -> Iterator[Metric]:
    state = GaugeMetricFamily("foveate_state", "1 for the state that the source is in.", labels=(*_LABELS, "state"))
    paused = GaugeMetricFamily("foveate_paused", "1 while the source is paused.", labels=_LABELS)
    age = GaugeMetricFamily("foveate_frame_age_seconds", "Since the latest picture arrived.", labels=_LABELS)
    debt = GaugeMetricFamily("foveate_debt_tokens", "Tokens given ahead of the average budget.", labels=_LABELS)
    for status in statuses:
        for possible in get_args(State):
            state.add_metric([*_labels(status), possible], float(possible == status["state"]))
        paused.add_metric(_labels(status), float(status["paused"]))
        if status["age"] is not None:
            age.add_metric(_labels(status), status["age"])
        if status["debt"] is not None:
            debt.add_metric(_labels(status), status["debt"])
    yield from (state, paused, age, debt)


def registry(sources: Sequence[ShownSource]) -> CollectorRegistry:
    """A registry of its own, without metrics of the process."""
    made = CollectorRegistry()
    made.register(_Sources(sources))
    return made


def exposition(registry: CollectorRegistry) -> bytes:
    """The metrics as text."""
    return generate_latest(registry)
