"""What a Source yields: decoded pictures."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.info import SourceInfo

Plane = NDArray[np.uint8]
Matrix = Literal["bt601", "bt709", "bt2020"]


@dataclass(frozen=True, slots=True)
class Colour:
    """How planes become R'G'B': the matrix, and whether luma spans 0-255 (full) or 16-235."""

    matrix: Matrix = "bt601"
    full_range: bool = False


@dataclass(frozen=True, slots=True)
class LiveTimes:
    """When a picture of a live source was captured, and when it arrived, both by this machine's monotonic clock.

    ``captured`` follows the sender's timestamps, shifted so that the fastest recent picture has no delay: a constant
    delay of camera and network is not included.
    """

    captured: float  # seconds, time.monotonic()
    arrived: float  # the same: decoded, before any waiting


class FrameView(Protocol):
    """A decoded picture, wherever its pixels are stored; see Frame."""

    @property
    def index(self) -> int: ...
    @property
    def time(self) -> float: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def luma(self) -> Plane: ...
    @property
    def chroma(self) -> tuple[Plane, Plane] | None: ...
    @property
    def subsampled(self) -> bool: ...
    @property
    def colour(self) -> Colour: ...
    @property
    def discontinuity(self) -> bool: ...
    @property
    def live(self) -> LiveTimes | None: ...
    def rgb(self) -> NDArray[np.uint8]: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frame:
    """One decoded picture, after rotation. Pixels are read-only after construction.

    ``luma`` is uint8[H, W]. ``chroma`` is (Cb, Cr), both uint8: [H, W] for 4:4:4, or
    [ceil(H/2), ceil(W/2)] for 4:2:0, or None for grey.

    >>> with open_stream("clip.mp4") as stream:
    ...     selection = next(stream)
    >>> stream.frame.luma.shape, stream.frame.time
    ((576, 768), 0.0)
    """

    index: int
    time: float  # presentation time in seconds; the first frame is 0.0
    luma: Plane
    chroma: tuple[Plane, Plane] | None
    colour: Colour = Colour()
    discontinuity: bool = False  # the times or the connection jumped just before this frame
    live: LiveTimes | None = None  # of cameras and network streams

    @property
    def width(self) -> int:
        """Width in pixels."""
        return int(self.luma.shape[1])

    @property
    def height(self) -> int:
        """Height in pixels."""
        return int(self.luma.shape[0])

    @property
    def subsampled(self) -> bool:
        """True where the chroma planes have half the luma's resolution (4:2:0); grey counts as 4:2:0."""
        return self.chroma is None or self.chroma[0].shape != self.luma.shape or self.luma.shape == (1, 1)

    def rgb(self) -> NDArray[np.uint8]:
        """R'G'B' uint8[H, W, 3], by the picture's own matrix and range; 4:2:0 chroma is enlarged bilinearly."""
        from foveate.pipeline.colour import picture_rgb  # which imports this module

        return picture_rgb(self)

    def __repr__(self) -> str:
        kind = "grey" if self.chroma is None else "4:2:0" if self.subsampled else "4:4:4"
        return f"Frame({self.index} at {self.time:.3f} s, {self.width}x{self.height}, {kind}, {self.colour})"


@dataclass(slots=True)
class Damage:
    """What a source could not decode. Filled while reading; for any thread to read."""

    frames: int = 0  # pictures or packets that could not be decoded
    messages: list[str] = field(default_factory=list)  # one line each; the first few are kept

    @property
    def summary(self) -> str:
        """What was lost, in one line; empty where nothing was."""
        if not self.frames and not self.messages:
            return ""
        first = f" ({self.messages[0]})" if self.messages else ""
        return f"{self.frames} pictures or packets could not be decoded{first}"

    def clear(self) -> None:
        """Reset."""
        self.frames = 0
        self.messages.clear()


class Source(Protocol):
    """A stream of Frames. Iterated once, by one thread; closed by the thread that iterates it."""

    info: SourceInfo
    damage: Damage

    def __iter__(self) -> Iterator[Frame]:
        """Yield Frames in presentation order. Raises SourceError."""

    def close(self) -> None:
        """Release the decoder. Safe to call twice; called by the thread that reads."""
