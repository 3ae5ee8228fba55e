"""Host frames arrive whole on the device, and nothing that is there already crosses the bus again."""

import numpy as np
import pytest

from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.frame_input import InputPlanes
from foveate.cuda.pixels import staging
from foveate.cuda.pixels.staging import Staging
from foveate.pipeline.frames import Frame, Plane

pytestmark = pytest.mark.gpu


def staged(planes: list[Plane], where: InputPlanes, stream: Stream) -> list[Plane]:
    """``planes`` as they lie on the device."""
    found = []
    for plane, pointer, pitch in zip(planes, where.pointers, where.pitches, strict=False):
        rows, columns = plane.shape
        found.append(DeviceArray("plane", (rows, pitch), plane.dtype, pointer).download(stream)[:, :columns])
    return found


@pytest.mark.parametrize(
    ("height", "width", "kind"), [(33, 17, "420"), (97, 131, "444"), (250, 333, "420"), (70, 64, "grey")]
)
def test_only_tiles_that_differ_cross_the_bus(
    height: int, width: int, kind: str, device: Device, memory: Memory, stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []  # tiles, plane by plane
    copy = staging.copy_tiles
    monkeypatch.setattr(staging, "copy_tiles", lambda *all: (copied.append(int(all[3].sum())), copy(*all)))
    rng = np.random.default_rng(width)
    chroma = {"420": (-(-height // 2), -(-width // 2)), "444": (height, width)}.get(kind)
    shapes = [(height, width), *([chroma, chroma] if chroma else [])]
    planes = [rng.integers(0, 256, shape, np.uint8) for shape in shapes]
    place: Staging | None = None
    for index in range(10):
        if index % 3:  # one sample, by the least there is
            planes = [plane.copy() for plane in planes]
            plane = planes[rng.integers(len(planes))]
            plane[rng.integers(plane.shape[0]), rng.integers(plane.shape[1])] ^= 1
        frame = Frame(index, index / 25, planes[0], (planes[1], planes[2]) if chroma else None)
        place = place or Staging(device, memory, frame, stream)
        where = place.upload(frame, index % 2, stream)
        for found, plane in zip(staged(planes, where, stream), planes, strict=True):
            assert np.array_equal(found, plane), index
    tiles = -(-height // 32) * -(-width // 32)
    assert copied[0] == tiles
    assert len(copied) == 7 * len(planes)  # nothing crosses where nothing differs
    assert all(count in (1, tiles) for count in copied[1:])
