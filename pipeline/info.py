"""What is known of a source and of an engine, as fields, and the notes in the header which say it to people."""

from dataclasses import dataclass
from typing import Literal

TimesFrom = Literal["stream", "declared rate", "rate setting", "arrival"]
"""Where times come from: the stream's timestamps; made up from the frame rate that it declares, or from the setting
source.rate; or, of a live source without timestamps, when each picture arrived."""


@dataclass(frozen=True, slots=True)
class Cropping:
    """Rows and columns that a container wants left out. All sizes are (width, height) in pixels, before rotation."""

    declared: tuple[int, int]  # of the pictures that it is meant for
    kept: tuple[int, int]
    decoded: tuple[int, int]  # of the first picture

    @property
    def applied(self) -> bool:
        """Whether pictures are cropped: they have the declared size."""
        return self.decoded == self.declared


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """What is known of a stream before its first frame is processed.

    >>> with open_stream("clip.mp4") as stream:
    ...     info = stream.info
    >>> info.width, info.height, info.codec
    (768, 576, 'h264')
    """

    name: str  # the address, passwords removed
    width: int  # after rotation
    height: int
    fps: float | None  # average rate; None if unknown
    frames: int | None  # None if unknown; a declared number may be wrong
    start: float = 0.0  # first timestamp in seconds, before times were shifted to 0.0
    times: TimesFrom = "stream"  # also for a single picture, whose time is 0.0
    assumed_rate: float | None = None  # frames per second that times were made up from; None: they were not made up
    rotation: int = 0  # degrees, already applied
    mirrored: bool = False  # by its metadata; already applied
    cropping: Cropping | None = None  # by its container
    unsupported_orientation: str | None = None  # not applied, such as "rotation by 45 degrees"
    sample_aspect: float = 1.0  # width of a pixel / its height; reported, not applied
    codec: str = ""  # FFmpeg's name of it, such as "av1", whichever decoder decodes it
    pixel_format: str = ""
    interlaced: bool = False
    unknown_matrix: int | None = None  # colour matrix (ISO/IEC 23091-2) that is read as the usual one for the size
    has_alpha: bool = False  # ignored
    undecodable_start: int = 0  # pictures before the first keyframe, which cannot be shown
    decoded_on_cpu: str | None = None  # with engine cuda: why the GPU does not decode it

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual, a line each, as in the header: what was made up, applied, ignored or cannot be applied."""
        return tuple(note for note in self._notes() if note)

    def _notes(self) -> tuple[str | None, ...]:
        orientation, mirrored = self.unsupported_orientation, self.mirrored
        return (
            _start_note(self.undecodable_start),
            _times_note(self.times, self.assumed_rate),
            _cropping_note(self.cropping),
            f"{orientation} not applied" if orientation else "mirrored" if mirrored else None,
            "interlaced" if self.interlaced else None,
            _matrix_note(self.unknown_matrix),
            "alpha ignored" if self.has_alpha else None,
            decoding_note(self.decoded_on_cpu),
        )


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """Which engine a stream has, and what it leaves to the CPU.

    >>> with open_stream("clip.mp4", engine="cpu") as stream:
    ...     stream.engine
    EngineInfo(name='cpu', instead_of_cuda=None, tokens_on_cpu=None)
    """

    name: Literal["cpu", "cuda"]
    instead_of_cuda: str | None = None  # with engine cpu: why the GPU that seems to be there is not used
    tokens_on_cpu: str | None = None  # with engine cuda: why the CPU chooses the tokens

    @property
    def notes(self) -> tuple[str, ...]:
        """The fallbacks, a line each, as in the header."""
        fallbacks = {"engine cpu instead of cuda": self.instead_of_cuda, "tokens chosen on the CPU": self.tokens_on_cpu}
        return tuple(f"{what}: {why}" for what, why in fallbacks.items() if why)


def decoding_note(decoded_on_cpu: str | None) -> str | None:
    """What is said of a video which the GPU does not decode."""
    return f"decoded on the CPU: {decoded_on_cpu}" if decoded_on_cpu else None


def _start_note(undecodable: int) -> str | None:
    if not undecodable:
        return None
    return f"begins between keyframes: {undecodable} pictures before the first one cannot be shown"


def _times_note(times: TimesFrom, rate: float | None) -> str | None:
    if times == "arrival":
        return "no timestamps: times are those of arrival"
    return None if times == "stream" else f"times made up from the {times}, {rate:g} frames per second"


def _cropping_note(cropping: Cropping | None) -> str | None:
    if cropping is None:
        return None
    declared, kept, decoded = (
        f"{width}x{height}" for width, height in (cropping.declared, cropping.kept, cropping.decoded)
    )
    return f"cropping from {declared} to {kept}" + ("" if cropping.applied else f" not applied: it is {decoded}")


def _matrix_note(matrix: int | None) -> str | None:
    return None if matrix is None else f"colour matrix {matrix} is read as the usual one for this size"
