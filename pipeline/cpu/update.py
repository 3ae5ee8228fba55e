"""The Update: the tiles of one frame that changed, with their pixels."""

from dataclasses import dataclass

from foveate.pipeline.frames import FrameView
from foveate.pipeline.geometry import Geometry, Mask
from foveate.pipeline.selection import KeyframeReason, starts_scene


@dataclass(frozen=True, slots=True, eq=False)
class Update:
    """What to write into the texture. The pixels are the frame's own, at the tiles of ``written``."""

    frame: FrameView
    geometry: Geometry
    keyframe: KeyframeReason | None
    changed: Mask  # bool[tiles]: tiles that differ from the reference frame
    written: Mask  # bool[tiles]: the tiles to write: the changed ones, or all of them on a keyframe
    noise: int  # in eighths of a grey value: the lower quartile of the differences from the previous frame

    @property
    def new_scene(self) -> bool:
        """True where nothing of an earlier scene may be reused: every keyframe but the periodic kind."""
        return starts_scene(self.keyframe)

    @property
    def writes(self) -> bool:
        """True where there is anything to write."""
        return bool(self.written.any())
