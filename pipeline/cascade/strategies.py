"""The strategies by name, and the channels that each reads beside the scores."""

from collections.abc import Callable, Mapping
from typing import Final

from foveate.pipeline.cascade.cluster_first import ClusterFirst
from foveate.pipeline.cascade.foveated import Foveated
from foveate.pipeline.cascade.problem import Strategy
from foveate.pipeline.cascade.rate_distortion import RateDistortion
from foveate.pipeline.cascade.top_k import FIVE_STAGES, ONE_STAGE, THREE_STAGES, TopK
from foveate.pipeline.geometry import TOP_LEVEL, Geometry
from foveate.pipeline.settings import AllocationSettings

_STRATEGIES: Final[Mapping[str, Callable[[AllocationSettings], Strategy]]] = {
    "rate_distortion": lambda settings: RateDistortion(settings.min_gain, settings.merge),
    "three_stage": lambda settings: TopK(THREE_STAGES, settings.min_gain, settings.merge),
    "five_stage": lambda settings: TopK(FIVE_STAGES, settings.min_gain, settings.merge),
    "adaptive": lambda settings: TopK(THREE_STAGES, settings.min_gain, settings.merge, settings.share),
    "cluster_first": lambda settings: ClusterFirst(settings.min_gain, settings.merge),
    "foveated": lambda settings: Foveated(settings.m0, settings.e0, settings.min_gain, settings.merge),
    "soft": lambda settings: TopK(ONE_STAGE, settings.min_gain, settings.merge),
}
_COVERING: Final = frozenset({"rate_distortion", "foveated"})  # these use coarse tokens; the others LOD 0 only
_READS: Final[Mapping[str, frozenset[str]]] = {"cluster_first": frozenset({"cluster_id"})}


def strategy(settings: AllocationSettings) -> Strategy:
    """The strategy that the settings name."""
    return _STRATEGIES[settings.strategy](settings)


def top_lod(settings: AllocationSettings, geometry: Geometry, budget: int) -> int:
    """The LOD of the coarsest tokens that the strategy may choose for a budget of tokens; at least TOP_LEVEL."""
    if settings.strategy not in _COVERING:
        return TOP_LEVEL
    return geometry.top(budget // settings.merge**2, settings.merge)


def channels_read(settings: AllocationSettings) -> frozenset[str]:
    """The temporal and cluster channels that the strategy needs in Problem.channels."""
    return _READS.get(settings.strategy, frozenset())
