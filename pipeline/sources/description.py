"""What is told of a source when it is opened."""

from __future__ import annotations

from av.video.frame import VideoFrame

from foveate.pipeline.frames import Frame, SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.decoding import Feed
from foveate.pipeline.sources.orientation import Orientation, orientation_of
from foveate.pipeline.sources.planes import unknown_matrix


def describe(
    feed: Feed, decoded: VideoFrame, frame: Frame, start: float, settings: SourceSettings, name: str
) -> SourceInfo:
    """Facts of the stream. ``decoded`` is its first picture as it came, ``frame`` the same as yielded."""
    orientation = orientation_of(decoded)
    aspect = feed.sample_aspect
    frames = feed.frames
    if settings.frames is not None and frames is not None:
        frames = min(frames, settings.frames)
    return SourceInfo(
        name=name,
        width=frame.width,
        height=frame.height,
        fps=feed.average_rate,
        frames=frames,
        start=start,
        rotation=orientation.rotation,
        sample_aspect=1 / aspect if orientation.transpose else aspect,
        codec=feed.decoder.name,
        pixel_format=decoded.format.name,
        notes=tuple(_notes(feed, decoded, orientation, settings)),
    )


def _notes(feed: Feed, decoded: VideoFrame, orientation: Orientation, settings: SourceSettings) -> list[str]:
    notes = []
    if feed.times == "setting":
        notes.append(f"times made up from the rate setting ({settings.rate:g} frames per second)")
    elif feed.times == "none":
        notes.append(f"times made up from the declared rate ({feed.rate or settings.rate:g} frames per second)")
    if decoded.interlaced_frame:
        notes.append("interlaced")
    if orientation.skewed is not None:
        notes.append(f"rotation by {orientation.skewed:g} degrees not applied")
    elif orientation.mirrored:
        notes.append("mirrored")
    if unknown_matrix(decoded):
        notes.append(f"colour matrix {decoded.colorspace} is read as the usual one for this size")
    if any(component.is_alpha for component in decoded.format.components):
        notes.append("alpha ignored")
    return notes
