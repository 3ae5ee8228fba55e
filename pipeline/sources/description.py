"""What is told of a source when it is opened."""

from __future__ import annotations

from dataclasses import dataclass

from av.video.frame import VideoFrame

from foveate.pipeline.frames import SourceInfo
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.decoding import Feed, Times
from foveate.pipeline.sources.planes import unknown_matrix
from foveate.pipeline.sources.reading import Picture


@dataclass(frozen=True, slots=True)
class Opening:
    """What is found on opening: the first picture as it came and as it is yielded."""

    decoded: VideoFrame
    shown: Picture
    start: float | None  # its timestamp in seconds; None: it has none
    lone: bool  # it is known to be the only one
    skipped: int = 0  # pictures before it that could not be shown, because a keyframe came after them


def describe(feed: Feed, opening: Opening, settings: SourceSettings, name: str) -> SourceInfo:
    """What ``info`` tells of a stream."""
    decoded, shown, lone = opening.decoded, opening.shown, opening.lone
    orientation, (height, width) = shown.orientation, shown.luma.shape
    aspect, times = feed.sample_aspect, _settled(feed, opening)
    frames = 1 if lone else feed.frames
    if settings.frames is not None and frames is not None:
        frames = min(frames, settings.frames)
    return SourceInfo(
        name=name,
        width=width,
        height=height,
        fps=None if lone else feed.average_rate,
        frames=frames,
        start=opening.start or 0.0 if times == "stream" and not feed.decode_order else 0.0,
        rotation=orientation.rotation,
        sample_aspect=1 / aspect if orientation.transpose else aspect,
        codec=feed.decoder.name,
        pixel_format=decoded.format.name,
        mirrored=_is_mirrored(opening),
        interlaced=bool(decoded.interlaced_frame),
        notes=(
            *_beginning_notes(opening),
            *_time_notes(feed, times, lone),
            *_geometry_notes(feed, opening),
            *_picture_notes(decoded),
        ),
    )


def _settled(feed: Feed, opening: Opening) -> Times:
    """Where the times come from, now that the first picture is known."""
    if feed.times != "untold":
        return feed.times
    if opening.start is not None:
        return "stream"
    return "rate" if feed.rate else "setting"


def _beginning_notes(opening: Opening) -> list[str]:
    if not opening.skipped:
        return []
    return [f"begins between keyframes: {opening.skipped} pictures before the first one cannot be shown"]


def _time_notes(feed: Feed, times: Times, lone: bool) -> list[str]:
    if times == "stream" or lone:
        return []
    origin = "declared rate" if times == "rate" else "rate setting"
    return [f"times made up from the {origin}, {feed.rate:g} frames per second"]


def _is_mirrored(opening: Opening) -> bool:
    """Whether what is yielded is mirrored as the metadata say."""
    return opening.shown.orientation.lacking is None and opening.shown.orientation.mirrored


def _geometry_notes(feed: Feed, opening: Opening) -> list[str]:
    notes, crop, orientation = [], feed.geometry.crop, opening.shown.orientation
    if crop is not None:
        wide, high = crop.kept
        cropping = f"cropping from {crop.width}x{crop.height} to {wide}x{high}"
        if opening.shown.crop is not None:
            notes.append(cropping)
        else:
            notes.append(f"{cropping} not applied: it is {opening.decoded.width}x{opening.decoded.height}")
    if orientation.lacking is not None:
        notes.append(f"{orientation.lacking} not applied")
    elif _is_mirrored(opening):
        notes.append("mirrored")
    return notes


def _picture_notes(decoded: VideoFrame) -> list[str]:
    notes = []
    if decoded.interlaced_frame:
        notes.append("interlaced")
    if unknown_matrix(decoded):
        notes.append(f"colour matrix {decoded.colorspace} is read as the usual one for this size")
    if any(component.is_alpha for component in decoded.format.components):
        notes.append("alpha ignored")
    return notes
