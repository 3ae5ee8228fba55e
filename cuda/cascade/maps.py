"""The maps of a Selection: which device arrays hold them, and their copies on the host."""

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import MAPS, Arrays
from foveate.cuda.driver.device import Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import SLOTS
from foveate.cuda.query.device_query import DeviceQuery
from foveate.cuda.state import GRID_CHANNELS, PixelState
from foveate.pipeline.cascade.clusters import boundary
from foveate.pipeline.cascade.temporal import Temporal
from foveate.pipeline.colour import to_rgb
from foveate.pipeline.geometry import Map
from foveate.pipeline.settings import Settings

_COLOURS = ("red", "green", "blue")
_PLANES = ("luma of cells", "Cb of cells", "Cr of cells")
_MADE_FROM = {"boundary": "cluster_id"} | dict.fromkeys(("x", "y", *_COLOURS), "")


class Maps:
    """Copies the requested maps to the host, into one of two slots."""

    def __init__(
        self, memory: Memory, pixels: PixelState, arrays: Arrays, settings: Settings, device_query: DeviceQuery | None
    ) -> None:
        self._device_query = device_query
        self._query_maps: list[dict[str, Map]] = [{} for _ in range(SLOTS)]  # maps that the host makes, by slot
        self._names = settings.maps
        self._pixels = pixels
        sources = _sources(pixels, arrays) | (device_query.channels() if device_query else {})
        wanted = {_MADE_FROM.get(name, name) for name in self._names if not _is_query_map(name)} - {""}
        if not set(_COLOURS).isdisjoint(self._names):
            wanted.update(_PLANES)
        self._copied = {name: sources[name] for name in sorted(wanted)}
        self._slots = [
            {name: memory.pinned(source.shape, np.float32) for name, source in self._copied.items()}
            for _ in range(SLOTS if self._copied else 0)
        ]
        self._fixed = Temporal(pixels.geometry, settings.cache, frozenset())

    def keep_query_maps(self, slot: int) -> None:
        """Keep the maps that the host makes of this frame."""
        assert self._device_query is not None
        self._query_maps[slot] = {name: self._device_query.map(name) for name in self._names if _is_query_map(name)}

    def fetch(self, slot: int, stream: Stream) -> None:
        """Enqueue the copies."""
        if not self._copied:
            return
        from pycuda import driver

        for name, source in self._copied.items():
            driver.memcpy_dtoh_async(self._slots[slot][name], source.pointer, stream)

    def read(self, slot: int, turn: int) -> dict[str, Map]:
        """The maps by name, float32[grid], of the frame whose copies have arrived; ``turn`` is its header's."""
        return {name: self._read(name, slot, turn) for name in self._names}

    def _read(self, name: str, slot: int, turn: int) -> Map:
        if _is_query_map(name):
            return self._query_maps[slot][name]
        if name in ("x", "y"):
            return self._fixed.channel(name)
        if name in _COLOURS:
            luma, cb, cr = (self._slots[slot][plane] for plane in _PLANES)
            rgb = to_rgb(luma, cb, cr, self._pixels.colour)
            return np.asarray(rgb[..., _COLOURS.index(name)] / 255, np.float32)
        source = _MADE_FROM.get(name, name)
        values: NDArray[np.float32] = self._slots[slot][source]
        values = np.array(values[turn] if source in MAPS else values)
        return boundary(values) if name == "boundary" else values


def _sources(pixels: PixelState, arrays: Arrays) -> dict[str, DeviceArray]:
    """Device arrays by name; those of MAPS hold both turns."""
    warped = {name: arrays.warped(name) for name in MAPS}
    local = {name: pixels.channel(name) for name in GRID_CHANNELS}
    own = {"score": arrays.scores.part(0), "eccentricity": arrays.eccentricity, "gaze": arrays.gaze}
    planes = dict(zip(_PLANES, pixels.colours, strict=True))
    return {**warped, **local, **own, **planes, "prev_attention": arrays.prev_attention}


def _is_query_map(name: str) -> bool:
    """True for a map that the host makes from embeddings."""
    return name.startswith("query")
