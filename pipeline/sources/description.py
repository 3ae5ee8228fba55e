"""The SourceInfo of a video, made when it is opened."""

from dataclasses import dataclass

from av.video.frame import VideoFrame

from foveate.pipeline.info import Cropping, SourceInfo, TimesFrom
from foveate.pipeline.settings import SourceSettings
from foveate.pipeline.sources.coded import codec_of
from foveate.pipeline.sources.cropping import Crop
from foveate.pipeline.sources.decoding import Feed
from foveate.pipeline.sources.planes import unknown_matrix
from foveate.pipeline.sources.reading import Picture


@dataclass(frozen=True, slots=True)
class Opening:
    """What is known on opening: the first picture as decoded and as yielded."""

    decoded: VideoFrame
    shown: Picture
    start: float | None  # its timestamp in seconds; None: it has none
    single: bool  # it is the only picture
    skipped: int = 0  # pictures before it that could not be shown, because a keyframe came after them


def describe(feed: Feed, opening: Opening, settings: SourceSettings, name: str) -> SourceInfo:
    """The SourceInfo of a stream."""
    decoded, shown, single = opening.decoded, opening.shown, opening.single
    orientation, (height, width) = shown.orientation, shown.luma.shape
    aspect, times = feed.sample_aspect, _times(feed, opening)
    frames = 1 if single else feed.frames
    if settings.frames is not None and frames is not None:
        frames = min(frames, settings.frames)
    return SourceInfo(
        name=name,
        width=width,
        height=height,
        fps=None if single else feed.average_rate,
        frames=frames,
        start=opening.start or 0.0 if times == "stream" and not feed.decode_order else 0.0,
        times="stream" if single else times,
        assumed_rate=None if single or times == "stream" else feed.rate,
        rotation=orientation.rotation,
        mirrored=orientation.unsupported is None and orientation.mirrored,
        cropping=_cropping(feed.geometry.crop, decoded),
        unsupported_orientation=orientation.unsupported,
        sample_aspect=1 / aspect if orientation.transpose else aspect,
        codec=codec_of(feed.decoder.name),
        pixel_format=decoded.format.name,
        interlaced=bool(decoded.interlaced_frame),
        unknown_matrix=unknown_matrix(decoded),
        has_alpha=any(component.is_alpha for component in decoded.format.components),
        undecodable_start=opening.skipped,
    )


def _times(feed: Feed, opening: Opening) -> TimesFrom:
    """Where the times come from, now that the first picture is known."""
    if feed.times == "stream" or (feed.times == "unknown" and opening.start is not None):
        return "stream"
    return "declared rate" if feed.times == "rate" or (feed.times == "unknown" and feed.rate) else "rate setting"


def _cropping(crop: Crop | None, decoded: VideoFrame) -> Cropping | None:
    return None if crop is None else Cropping((crop.width, crop.height), crop.kept, (decoded.width, decoded.height))
