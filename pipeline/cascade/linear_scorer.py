"""``scorer = "linear"``: the score as a weighted sum of channels, one weight each: a 1x1 convolution.

The weights are a TOML file (``bias = 0.1``, and a table ``[weights]`` with one number per channel) or an NPZ file (the
arrays ``channels``, their names, and ``weights`` of one length, and ``bias``, a number).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from foveate.pipeline.channels import BY_NAME
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.geometry import Map
from foveate.pipeline.npz import npz_arrays
from foveate.pipeline.settings import shown_value
from foveate.pipeline.small_files import SMALL, small_toml

_LARGEST = 1e30  # of a weight: sums of products stay finite in float32


@dataclass(frozen=True, slots=True)
class LinearScorer:
    """score = bias + the sum of weight * channel, clipped to [0, 1]. Raises ValueError for unknown channels."""

    weights: Mapping[str, float]  # by the channel's name
    bias: float = 0.0

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            check_weighable(name)
            _check_number(f"the weight of {shown_value(name)}", weight)
        _check_number("bias", self.bias)
        if not self.weights:
            raise ValueError("there must be at least one weight")

    @property
    def channels(self) -> frozenset[str]:
        """Names of the channels whose weight is not 0."""
        return frozenset(name for name, weight in self.weights.items() if weight)

    def score(self, channels: Mapping[str, Map]) -> Map:
        """The score, from maps float32[...] of one shape by name."""
        total: Map | np.float32 = np.float32(self.bias)
        for name in sorted(self.channels):
            total = total + np.float32(self.weights[name]) * channels[name]
        return np.clip(np.broadcast_to(total, next(iter(channels.values())).shape), 0, 1).astype(np.float32)


def _check_number(what: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < math.inf:
        raise ValueError(f"{what} must be a finite number, got {shown_value(value)}")
    if abs(value) > _LARGEST:
        raise ValueError(f"{what} must be at most {_LARGEST:g} either way")


def check_weighable(name: str) -> None:
    """Raise ValueError if ``name`` is not a channel, or its values are labels."""
    if name not in BY_NAME:
        raise ValueError(f"{shown_value(name)} is not a channel")
    if name == "cluster_id":
        raise ValueError("'cluster_id' is an identity and cannot be weighed")


def read_scorer(path: Path) -> LinearScorer:
    """The scorer in a ``.toml`` or ``.npz`` file. Raises SettingsError, one line."""
    try:
        content = _npz(path) if path.suffix.lower() == ".npz" else _toml(path)
        return LinearScorer(*content)
    except OSError as error:
        raise SettingsError(f"cannot read the weights {path}: {error.strerror}") from None
    except KeyError as error:
        raise SettingsError(f"the weights {path} cannot be used: there is no array {error}") from None
    except ValueError as error:  # also what is no text, no TOML or no NPZ
        raise SettingsError(f"the weights {path} cannot be used: {' '.join(str(error).split())}") from None


def write_scorer(path: Path, scorer: LinearScorer, comment: str = "") -> None:
    """Write ``scorer`` as a TOML file, with ``comment`` (lines) above. Raises OSError."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines += [f"bias = {float(scorer.bias)!r}", "", "[weights]"]
    lines += [f"{name} = {float(weight)!r}" for name, weight in scorer.weights.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _toml(path: Path) -> tuple[dict[str, Any], Any]:
    content = small_toml(path)
    unknown = content.keys() - {"bias", "weights"}
    if unknown:
        raise ValueError(f"it may hold bias and [weights], not {shown_value(sorted(unknown)[0])}")
    weights = content.get("weights")
    if not isinstance(weights, dict):
        raise ValueError("it must have a table [weights]")
    return weights, content.get("bias", 0.0)


def _npz(path: Path) -> tuple[dict[str, Any], Any]:
    content = npz_arrays(path, most=SMALL)
    names, weights, bias = content["channels"], content["weights"], content.get("bias", np.zeros(()))
    if names.dtype.kind != "U" or names.ndim != 1 or weights.shape != names.shape or bias.size != 1:
        raise ValueError("channels must be a list of names, weights one of as many numbers, bias a number")
    if len(set(names.tolist())) < len(names):
        raise ValueError(f"channels must differ, got {', '.join(names.tolist())}")
    return dict(zip(names.tolist(), weights.tolist(), strict=True)), bias.item()
