"""Which settings the device has kernels for, from the pixels to the tokens."""

from typing import Final

from foveate.cuda.cascade.linear_scorer import WEIGHABLE
from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.plan import StreamPlan

STRATEGIES: Final = ("rate_distortion", "three_stage", "five_stage", "adaptive", "soft", "foveated")
"""Strategies that the device has kernels for."""


def missing_kernels(plan: StreamPlan) -> str | None:
    """Why tokens cannot be chosen on the device, in words; None where they can."""
    settings = plan.settings
    strategy = settings.allocation.strategy
    unweighable = sorted(plan.scorer.channels - WEIGHABLE) if plan.scorer else []
    maps = {group: [name for name in settings.maps if _group(name) == group] for group in ("cluster", "optional")}
    reasons = {
        f"there are no kernels for the strategy {strategy!r}": strategy not in STRATEGIES,
        "there are no kernels for a second pass": settings.score.passes > 1,
        f"there are no kernels that weigh the channel {''.join(unweighable[:1])!r}": unweighable,
        "the kernels make clusters on keyframes only": maps["cluster"] and not settings.cache.enabled,
        "there are no kernels for the channel 'text' without a query": "text" in settings.maps and plan.queries is None,
        "there are no kernels for regions": plan.regions is not None,
        "text is found by a detector": plan.detector is not None,
        f"there are no kernels for the channel {''.join(maps['optional'][:1])!r}": maps["optional"],
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _group(name: str) -> str | None:
    """The group of a channel; None for a map that is no channel."""
    return BY_NAME[name].group if name in BY_NAME else None
