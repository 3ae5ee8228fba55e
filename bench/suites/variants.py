"""What the ablation varies: for each setting or part, the values tried instead of the default."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from foveate.pipeline.settings import Settings

Options = Mapping[str, Any]  # a partial tree of settings


class Variant(NamedTuple):
    """One value of a group. ``weights``: those of the linear scorer, which are written to a file for the run."""

    value: str
    options: Options
    weights: Mapping[str, float] | None = None


class Group(NamedTuple):
    """Values of one thing. ``setting``: its dotted key; the default's value is tried whether it is named or not.

    ``also`` is set under all of them: what the setting needs to matter.
    """

    name: str
    setting: str | None
    variants: tuple[Variant, ...]
    also: Options = MappingProxyType({})


def _of(setting: str, *values: Any) -> Group:
    section, _, key = setting.rpartition(".")
    named = [Variant(_text(value), {section: {key: value}} if section else {key: value}) for value in values]
    return Group(setting, setting, tuple(named))


def _scored(setting: str, *values: Any) -> Group:
    """Values of a setting that does nothing while there is no score."""
    return _of(setting, *values)._replace(name=f"{setting}, score on", also={"score": {"enabled": True}})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "never" if value == NEVER else str(value)


NEVER: Final = 1_000_000  # frames between periodic keyframes
BIAS: Final = "bias"

# The balance of information and perspective without a query (pipeline/cascade/scores.py), as weights of a linear
# scorer: the greater of the two edges counts as their mean, and the factor of eccentricity, 3/4 at half way, is fixed.
_BALANCE: Final[Mapping[str, Mapping[str, float]]] = {
    "edges": {"edges": 0.1, "edges_inverted": 0.1},
    "high pass": {"highpass": 0.15},
    "edge distance": {"edge_distance": -0.15, BIAS: 0.15},
    "saliency": {"saliency": 0.225},
    "motion": {"motion": 0.15},
}


def _groups_of_channels() -> Group:
    every = Variant("all", {"score": {"scorer": "linear"}}, _weights(""))
    less = [Variant(f"without {name}", {"score": {"scorer": "linear"}}, _weights(name)) for name in _BALANCE]
    only = [Variant(f"{name} alone", {"score": {"scorer": "linear"}}, dict(part)) for name, part in _BALANCE.items()]
    return Group("channel groups", None, (every, *less, *only, Variant("score off", {"score": {"enabled": False}})))


def _weights(left_out: str) -> dict[str, float]:
    parts = (part for name, part in _BALANCE.items() if name != left_out)
    return {channel: weight for part in parts for channel, weight in part.items()}


GROUPS: Final[tuple[Group, ...]] = (
    _of("change.threshold", 1.0, 1.5, 2.0, 3.0, 4.0, 6.0),
    _of("change.noise", 0.0, 1.0, 1.5, 2.0, 3.0),
    _of("change.keyframe_interval", 10, 30, 100, NEVER),
    _of("score.enabled", None, True),
    _scored("score.floor", 0.01, 0.02, 0.05, 0.1, 0.3, 1.0),
    _of("allocation.min_gain", 16.0, 64.0, 256.0),
    _of("allocation.interpolation", "bilinear", "bicubic"),
    _scored("cache.enabled", True, False),
    _scored("cache.flow_level", 2, 3),
    _scored("cache.blend", 0.0, 0.3, 0.6),
    _scored("analysis_level", 0, 1, 2),
    _of("allocation.strategy", "rate_distortion", "foveated", "three_stage", "five_stage"),
    _groups_of_channels(),
)


def default_of(group: Group, settings: Settings) -> str | None:
    """The value that ``settings`` have, as ``Variant.value`` spells it; None for what is no single setting."""
    if group.setting is None:
        return None
    found: Any = settings
    for part in group.setting.split("."):
        found = getattr(found, part)
    return _text(found)


def with_default(group: Group, settings: Settings) -> tuple[Variant, ...]:
    """The group's variants, and before them the value of ``settings`` where none of them has it."""
    default = default_of(group, settings)
    if default is None or any(variant.value == default for variant in group.variants):
        return group.variants
    return (Variant(default, {}), *group.variants)
