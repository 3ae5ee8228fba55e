"""The linear scorer's terms for carry.cu: where the card finds each channel that is weighed."""

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.structs import constants, layouts
from foveate.cuda.state import GRID_CHANNELS, PixelState
from foveate.pipeline.cascade.linear_scorer import LinearScorer
from foveate.pipeline.cascade.temporal import Temporal
from foveate.pipeline.settings import Settings
from foveate.pipeline.spec.warped_maps import WarpedMap

_SOURCE: Final = Path(__file__).with_name("carry.cu")
_STRUCTS: Final = layouts(_SOURCE)
_CONSTANTS: Final = constants(_SOURCE)
_PLACES: Final = ("x", "y")  # the same for all frames of a size
_COMPUTED: Final = {
    "prev_relevance": WarpedMap.PREV_RELEVANCE,
    "prev_saliency": WarpedMap.PREV_SALIENCY,
    "fixation": WarpedMap.FIXATION,
    "prev_attention": WarpedMap.ATTENTION,
    "attention": _CONSTANTS["NEW_ATTENTION"],
    "gaze": _CONSTANTS["NEW_GAZE"],
}
"""Channels that carry.cu itself updates, by the number under which it knows them."""

WEIGHABLE: Final = frozenset({*GRID_CHANNELS, *_PLACES, "eccentricity", *_COMPUTED})
"""Names of the channels that can be weighed on the card."""


def linear(
    memory: Memory, pixels: PixelState, arrays: Arrays, settings: Settings, scorer: LinearScorer | None, stream: Stream
) -> NDArray[np.void]:
    """The struct Linear of ``scorer``, whose channels are WEIGHABLE; empty without one. Raises EngineError."""
    packed = np.zeros((), _STRUCTS["Linear"])
    if scorer is None:
        return packed
    names = sorted(scorer.channels)  # the order of the CPU's additions
    terms = np.zeros(max(len(names), 1), _STRUCTS["Term"])
    fixed = Temporal(pixels.geometry, settings.cache, frozenset())
    for term, name in zip(terms, names, strict=False):
        term["weight"] = scorer.weights[name]
        term["source"] = _COMPUTED.get(name, _CONSTANTS["IN_MEMORY"])
        if name in _PLACES:
            place = memory.array(name, pixels.geometry.grid, np.float32, stream)
            place.upload(np.ascontiguousarray(fixed.channel(name)), stream)
            term["map"] = place.pointer
        elif name not in _COMPUTED:
            term["map"] = _in_memory(name, pixels, arrays).pointer
    on_device = memory.array("weights of channels", terms.shape, terms.dtype, stream)
    on_device.upload(terms, stream)
    packed["terms"], packed["count"], packed["bias"] = on_device.pointer, len(names), scorer.bias
    return packed


def _in_memory(name: str, pixels: PixelState, arrays: Arrays) -> DeviceArray:
    return arrays.eccentricity if name == "eccentricity" else pixels.channel(name)
