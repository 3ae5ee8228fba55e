"""The Selection: the tokens of one frame, plus why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import FrameView
from foveate.pipeline.spec.tokens import PATCH as PATCH

if TYPE_CHECKING:
    from foveate.pipeline.selection.painting import Interpolation


KeyframeReason = Literal["first", "periodic", "cut", "size", "discontinuity"]


def starts_scene(keyframe: KeyframeReason | None) -> bool:
    """True where nothing of an earlier scene may be reused: every keyframe but the periodic kind."""
    return keyframe is not None and keyframe != "periodic"


class DLPack(Protocol):
    """An array in whichever memory, which other libraries take over without a copy: ``torch.from_dlpack(array)``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        """A capsule; see the DLPack protocol of the Python array API standard."""

    def __dlpack_device__(self) -> tuple[int, int]:
        """Type and number of the device."""


class NaFlex(NamedTuple):
    """The tokens as encoders with native aspect and flexible resolution take them.

    >>> with open_stream("clip.mp4", budget=50, patches=True) as stream:
    ...     patches, coords, valid, grid = next(stream).naflex(64)
    >>> patches.shape, grid
    ((64, 768), (36, 48))
    """

    patches: NDArray[np.uint8]  # [N, PATCH*PATCH*3]; zeros where not valid
    coords: NDArray[np.int32]  # [N, 2]: row and column of the cell that holds the token's centre, both within ``grid``
    valid: NDArray[np.bool_]  # [N]
    grid: tuple[int, int]  # rows and columns of cells of the whole picture, which coords alone do not tell


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Selection:
    """The tokens chosen for one frame. Arrays have length K, in the order: coarse to fine, then row by row.

    With ``merge`` 2 or 3 that is the order of the groups. Each is ``merge**2`` tokens of one LOD one after the other,
    row by row. Where a group reaches over the right or bottom edge, tokens that would lie wholly outside the picture
    repeat their neighbours in the group.

    >>> with open_stream("clip.mp4", budget=50, patches=True) as stream:
    ...     selection = next(stream)
    >>> selection.patches.shape == (len(selection), 16, 16, 3)
    True
    >>> side = 16 * 2 ** selection.lod.astype(int)  # of the square that each token covers, in pixels
    """

    index: int
    time: float  # seconds
    width: int  # of the frame, in pixels
    height: int
    keyframe: KeyframeReason | None
    changed: float  # share of tiles whose pixels changed, in [0, 1]
    recomputed: float  # share of cells whose cached maps were not reused, in [0, 1]
    x: NDArray[np.int32]  # centre, level-0 pixels
    y: NDArray[np.int32]
    lod: NDArray[np.uint8]  # the token covers (16 * 2**lod)**2 level-0 pixels; above 4 where few are to cover much
    score: NDArray[np.float32]  # mean over the covered cells, each in [0, 1]
    information: NDArray[np.float32]
    perspective: NDArray[np.float32]
    participation: NDArray[np.float32] | None  # None without a query: absent, not zero
    age: NDArray[np.int32]  # frames since its pixels last changed
    fresh: NDArray[np.bool_]  # changed or moved since last emitted there
    patches: NDArray[np.uint8] | None = None  # [K, PATCH, PATCH, 3] RGB, where asked for
    device_patches: DLPack | None = None  # the same on the GPU, where asked for
    embeddings: NDArray[np.float32] | None = None  # [K // merge**2, D]: a model's, where an output holds them
    maps: Mapping[str, NDArray[np.float32]] = field(default_factory=dict)  # over the Grid, by name, where asked for
    extras: Mapping[str, Any] = field(default_factory=dict)  # further fields for the record
    region: NDArray[np.int32] | None = None  # with regions: the place in ``regions`` of each token's region
    regions: tuple[str, ...] = ()  # names of the frame's regions, also of those without tokens

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        counts = np.bincount(self.lod, minlength=5)
        return (
            f"Selection({self.index} at {self.time:.3f} s, {len(self)} tokens, per LOD {counts.tolist()}, "
            f"changed {self.changed:.0%})"
        )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of cells of PATCH x PATCH pixels that hold any of the picture."""
        return -(-self.height // PATCH), -(-self.width // PATCH)

    def naflex(self, length: int | None = None) -> NaFlex:
        """Patches, coordinates, validity and the picture's grid, padded to ``length`` tokens (default: K).

        The centre of a large token at the right or bottom edge may lie beyond the picture; it is given the last cell
        there. Raises ValueError where the Selection has no patches, or more than ``length`` tokens.
        """
        if self.patches is None:
            raise ValueError("the selection holds no patches; open the stream with patches=True")
        count = len(self)
        length = count if length is None else length
        if count > length:
            raise ValueError(f"length must be at least the number of tokens, {count}, got {length}")
        patches = np.zeros((length, PATCH * PATCH * 3), np.uint8)
        patches[:count] = self.patches.reshape(count, patches.shape[1])
        coords = np.zeros((length, 2), np.int32)
        rows, columns = self.grid
        coords[:count, 0] = np.minimum(self.y // PATCH, rows - 1)
        coords[:count, 1] = np.minimum(self.x // PATCH, columns - 1)
        return NaFlex(patches, coords, np.arange(length) < count, (rows, columns))

    # What shows a picture imports OpenCV when it is called: records are read and written without it.

    def paint(
        self, onto: NDArray[np.uint8] | None = None, *, interpolation: Interpolation = "bilinear"
    ) -> NDArray[np.uint8]:
        """What the model sees: a picture, R'G'B' uint8[height, width, 3], put together from the patches.

        Each token is enlarged to the square that it covers. With frame memory the tokens cover the picture. With
        stream memory they are painted over what the model has seen before: give the picture of the frame before as
        ``onto``, which is not changed. On a keyframe other than a periodic one ``onto`` does not count, because the
        model is not to rely on it. What was never covered is mid-grey.

        Bilinear is how the engine takes a model to see its tokens, but that the engine enlarges the levels themselves,
        and here there are only the tokens: of a sample beyond a token's border, its neighbours and ``onto`` tell the
        mean. PSNR against the frame came out at most 0.1 dB lower (luma of 40 frames of each sample clip). Bicubic
        (OpenCV's, a = -0.75) comes closer to the frame, by 0.7 to 1.3 dB in frame memory; with stream memory, open the
        stream with ``allocation.interpolation`` "bicubic" as well, so that the engine expects it.

        Raises ValueError without patches, for an ``onto`` of another shape, and for another interpolation.
        """
        from foveate.pipeline.selection.painting import blank, paint_patches

        if self.patches is None:
            raise ValueError("the selection holds no patches to paint; open the stream with patches=True")
        if onto is None or starts_scene(self.keyframe):
            onto = blank(self.width, self.height)
        elif onto.shape != (self.height, self.width, 3):
            raise ValueError(f"onto must be of shape {(self.height, self.width, 3)}, got {onto.shape}")
        return paint_patches(onto, self.patches, self.x, self.y, self.lod, interpolation)

    def draw(self, picture: FrameView | NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The picture with an outline around each token, coloured by LOD as in the overlay: R'G'B' uint8[H, W, 3].

        ``picture`` is the frame, such as the stream's ``frame``, or R'G'B' uint8[H, W, 3] at any scale; it is not
        changed. Places without a token are darkened. Raises ValueError for another shape or type.
        """
        from foveate.pipeline.selection.notebook import drawn

        return drawn(self, picture)

    def _repr_html_(self) -> str:
        """For notebooks: what the model sees of this frame alone, and where the tokens lie."""
        from foveate.pipeline.selection.notebook import html_of

        return html_of(self)


@dataclass(frozen=True, slots=True)
class Header:
    """The first record of every output: what was read, and with which settings."""

    source: str  # the address, passwords removed
    width: int
    height: int
    fps: float | None
    config: Mapping[str, Any]  # the settings as plain data, and the engine that runs
    start: float = 0.0  # first timestamp of the source in seconds; records count from 0.0
    notes: tuple[str, ...] = ()  # "interlaced", fallbacks taken, and the like
    ignored: tuple[str, ...] = ()  # words of the queries that count for nothing


class Step(NamedTuple):
    """A frame and the tokens chosen from it."""

    frame: FrameView
    selection: Selection
