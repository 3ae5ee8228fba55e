"""The figures in Prometheus' format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foveate.app.web.gallery import Exhibit
from foveate.pipeline.live.state import State

_COUNTERS = {
    "received": "Pictures received and decoded.",
    "dropped": "Pictures dropped because there was no time for them.",
    "connections": "Connections that led to a picture.",
    "records": "Frames whose tokens were chosen.",
    "tokens": "Tokens chosen.",
}
_LABELS = ("source", "name")


class _Sources(Collector):
    def __init__(self, exhibits: Sequence[Exhibit]) -> None:
        self._exhibits = exhibits

    def collect(self) -> Iterator[Metric]:
        """One family after the other, with every source in it."""
        statuses = [exhibit.status(number) for number, exhibit in enumerate(self._exhibits)]
        for name, text in _COUNTERS.items():
            counter = CounterMetricFamily(f"foveate_{name}", text, labels=_LABELS)
            for status in statuses:
                counter.add_metric([str(status["number"]), status["name"]], status[name])
            yield counter
        state = GaugeMetricFamily("foveate_state", "1 for the state that the source is in.", labels=(*_LABELS, "state"))
        latency = GaugeMetricFamily(
            "foveate_latency_seconds", "From arrival to tokens, latest frames.", labels=(*_LABELS, "quantile")
        )
        age = GaugeMetricFamily("foveate_frame_age_seconds", "Since the latest picture arrived.", labels=_LABELS)
        for status in statuses:
            labels = [str(status["number"]), status["name"]]
            for possible in get_args(State):
                state.add_metric([*labels, possible], float(possible == status["state"]))
            latency.add_metric([*labels, "0.5"], status["latency_p50"])
            latency.add_metric([*labels, "0.99"], status["latency_p99"])
            if status["age"] is not None:
                age.add_metric(labels, status["age"])
        yield from (state, latency, age)


def registry(exhibits: Sequence[Exhibit]) -> CollectorRegistry:
    """A registry of its own, so that nothing of this process is told besides."""
    made = CollectorRegistry()
    made.register(_Sources(exhibits))
    return made


def exposition(registry: CollectorRegistry) -> bytes:
    """The text that Prometheus reads."""
    return generate_latest(registry)
