"""Upload of host frames: only the tiles that differ from the previous frame are copied."""

from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.program import Program
from foveate.cuda.frame_input import SLOTS, InputPlanes
from foveate.pipeline.frames import Frame, Plane
from foveate.pipeline.geometry import TILE, Geometry, Mask
from foveate.pipeline.native.change import changed_tiles, copy_tiles

_ALIGNMENT: Final = 16  # bytes that rows are padded to, so that four samples are read at once
_WHOLE: Final = 0.5
"""Share of differing tiles above which the whole frame is copied: one large transfer is faster."""


class Staging:
    """A device copy of the latest host frame, and page-locked memory for the frames in flight."""

    def __init__(self, device: Device, memory: Memory, frame: Frame, stream: Stream) -> None:
        """For frames of the format of ``frame``."""
        geometry, halved = Geometry(frame.width, frame.height), int(frame.subsampled)
        whole = frame.height, frame.width
        chroma = (frame.height + halved) >> halved, (frame.width + halved) >> halved
        self._tiles = geometry.tiles
        self._sides = (TILE, TILE >> halved, TILE >> halved)
        self._shapes = (whole, chroma, chroma)
        self._pitches = [-(-shape[1] // _ALIGNMENT) * _ALIGNMENT for shape in self._shapes]
        sizes = [shape[0] * pitch for shape, pitch in zip(self._shapes, self._pitches, strict=True)]
        self._offsets = [0, sizes[0], sizes[0] + sizes[1]]
        self._host = [memory.pinned((sum(sizes),), np.uint8) for _ in range(SLOTS)]
        self._lists = [memory.pinned((self._tiles[0] * self._tiles[1],), np.int32) for _ in range(SLOTS)]
        self._device = memory.array("staged frame", (sum(sizes),), np.uint8, stream)
        first, *chroma_planes = (self._device.pointer + offset for offset in self._offsets)
        self._grey, self._colour = (
            InputPlanes((first, *others), self._pitches, (1, 1, 1)) for others in ((0, 0), chroma_planes)
        )
        self._program = Program(Path(__file__).with_suffix(".cu"), device.architecture)
        self._kernel = self._program.kernel("fetch_tiles")
        self._before: tuple[Plane, ...] = ()

    def upload(self, frame: Frame, slot: int, stream: Stream) -> InputPlanes:
        """Enqueue the copy of the tiles that differ, and return where the planes lie.

        The last copy from ``slot`` must have ended.
        """
        planes = planes_of(frame)
        mask = self._differing(planes)
        self._before = planes
        if mask.any():
            for plane, target, side in zip(planes, self._views(slot), self._sides, strict=False):
                copy_tiles(plane, target, side, mask)
            self._send(mask, slot, len(planes), stream)
        return self._colour if len(planes) == 3 else self._grey

    def _differing(self, planes: tuple[Plane, ...]) -> Mask:
        """bool[tiles]: those that differ from the device copy; all of them if most do."""
        if len(self._before) != len(planes):
            return np.ones(self._tiles, np.bool_)
        now, before, sides = planes, self._before, self._sides
        if len(planes) == 1:  # the comparison takes three planes
            now, before, sides = planes * 3, before * 3, (TILE,) * 3
        mask = changed_tiles(now, before, [side // 4 for side in sides], 0.0, self._tiles)
        if mask.mean() > _WHOLE:
            mask[:] = True
        return mask

    def _views(self, slot: int) -> list[Plane]:
        """The planes of a slot's page-locked memory, without the padding of their rows."""
        parts = zip(self._offsets, self._pitches, self._shapes, strict=True)
        return [
            self._host[slot][offset : offset + rows * pitch].reshape(rows, pitch)[:, :columns]
            for offset, pitch, (rows, columns) in parts
        ]

    def _send(self, mask: Mask, slot: int, planes: int, stream: Stream) -> None:
        if mask.all():
            self._device.copy_from(self._host[slot], stream)
            return
        tiles = np.flatnonzero(mask)
        self._lists[slot][: len(tiles)] = tiles
        self._kernel.launch(stream, len(tiles), self._parameters(slot, len(tiles), planes))

    def _parameters(self, slot: int, count: int, planes: int) -> NDArray[np.void]:
        return self._program.parameters(
            "Fetch",
            host=_address(self._host[slot]),
            device=self._device,
            tiles=_address(self._lists[slot]),
            count=count,
            tile_columns=self._tiles[1],
            offsets=self._offsets,
            pitches=self._pitches,
            rows=[rows for rows, _ in self._shapes],
            sides=[side if at < planes else 0 for at, side in enumerate(self._sides)],
        )


def planes_of(frame: Frame) -> tuple[Plane, ...]:
    """Luma, and Cb and Cr where there are any."""
    return (frame.luma, *(frame.chroma or ()))


def _address(pinned: NDArray[Any]) -> int:
    """Page-locked memory has one address, on the host and on the device."""
    return int(pinned.ctypes.data)
