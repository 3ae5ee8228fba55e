"""Metrics by which two records are compared: name, unit, and whether higher or lower is better."""

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from foveate.bench.records.reading import Case, value_at

Better = Literal["higher", "lower"]


class Metric(NamedTuple):
    """One figure. ``samples`` gives its raw samples, in the order of time; empty where a case has none.

    Times (``timed``) differ from run to run and from machine to machine and are compared as ratios. The others are the
    same on every run, and are compared sample by sample, as differences.
    """

    key: str
    label: str
    unit: str
    better: Better
    timed: bool
    samples: Callable[[Case], Sequence[float]]
    least: float  # the smallest difference that counts; for times, of the ratio from 1


def _at(key: str) -> Callable[[Case], Sequence[float]]:
    return lambda case: value_at(case, key) or ()


def _rates(key: str) -> Callable[[Case], Sequence[float]]:
    return lambda case: [case["frames"] / seconds for seconds in value_at(case, key) or ()]


def _ratios(case: Case) -> Sequence[float]:
    decode, pipeline = (value_at(case, f"samples.{side}_seconds") or () for side in ("decode", "pipeline"))
    return [one / other for one, other in zip(decode, pipeline, strict=False)]


_QUALITY: Final = (
    Metric("psnr_luma", "PSNR, mean", "dB", "higher", False, _at("samples.psnr_luma"), 0.01),
    Metric("psnr_luma_pooled", "PSNR, pooled", "dB", "higher", False, _at(""), 0.01),
    Metric("psnr_luma_least", "PSNR, worst frame", "dB", "higher", False, _at(""), 0.01),
    Metric("constant_rate.psnr_luma", "PSNR, constant rate", "dB", "higher", False, _at(""), 0.01),
    Metric("psnr_rgb", "PSNR of R'G'B'", "dB", "higher", False, _at("samples.psnr_rgb"), 0.01),
    Metric("ssim", "SSIM", "", "higher", False, _at("samples.ssim"), 0.001),
    Metric("correlation", "correlation", "", "higher", False, _at(""), 0.001),
)
_SPEED: Final = (
    Metric("pipeline_fps", "frames per second", "fps", "higher", True, _rates("samples.pipeline_seconds"), 0.01),
    Metric("ratio", "of bare decoding", "", "higher", True, _ratios, 0.01),
    Metric("cpu_ms", "CPU time of a frame", "ms", "lower", True, _at("samples.cpu_ms"), 0.01),
    Metric("still_frame_ms", "still frame", "ms", "lower", True, _at("frame_costs.still_frame.samples_ms"), 0.01),
    Metric("keyframe_ms", "keyframe", "ms", "lower", True, _at("frame_costs.keyframe.samples_ms"), 0.01),
    Metric("steady.p50_ms", "steady frame", "ms", "lower", True, _at("steady.samples_ms"), 0.01),
    Metric("keyframe.p50_ms", "keyframe", "ms", "lower", True, _at("keyframe.samples_ms"), 0.01),
    Metric("device_ms", "device time", "ms", "lower", True, _at("samples.device_ms"), 0.01),
)
METRICS: Final = (*_QUALITY, *_SPEED)


def number(case: Case, metric: Metric) -> float | None:
    """The figure itself, where the case has it."""
    found = value_at(case, metric.key)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
