"""NPZ and safetensors with patches: whole files of bounded size, arrays concatenated over tokens.

A shard holds the frames up to ``shard_bytes``, so memory is bounded however long the stream is. The first is
named as asked, ``out.npz``; where there are more, ``out-00001.npz``, ``out-00002.npz`` ... follow. Each appears
under its name only when it is whole: after kill -9 all earlier shards are there, and the frames of the last one
are lost. Files of these names from an earlier run are removed.

Per shard, with F frames and N tokens in all; tokens of frame i are rows offsets[i] to offsets[i + 1]:

| key | array |
|---|---|
| frame_index | int64[F] |
| time | float64[F], seconds |
| width, height | int32[F], pixels |
| keyframe | bool[F] |
| changed, recomputed | float64[F], shares |
| offsets | int64[F + 1] |
| x, y | int32[N], centre, level-0 pixels |
| lod | uint8[N] |
| score, information, perspective | float32[N] |
| participation | float32[N], NaN for frames without a query; absent where no frame has one |
| region | int32[N], the place of the token's region in its line of the file of regions; absent without one |
| age | int32[N], frames |
| fresh | bool[N] |
| patches | uint8[N, 16, 16, 3], R'G'B' |
| embeddings | float32[N / m**2, D], one of each m * m tokens; absent where no encoder is given |
| maps | float32[F, C, rows, columns] over the grid of cells; absent where no maps are asked for |

m is the header's ``config.allocation.merge``, so embeddings of frame i are rows offsets[i] / m**2 to
offsets[i + 1] / m**2.
The C maps are in the order of the header's ``config.maps``. Where the grid's size changes, a new shard begins.

The header (docs/output-format.md), with ``shard`` (counted from 0), is JSON text: ``header`` in an NPZ file, the
metadata entry ``foveate`` in a safetensors file.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.frames import FrameView
from foveate.pipeline.selection import PATCH, Header, Selection
from foveate.pipeline.sinks.destination import cannot_write, claim, place_of, write_whole
from foveate.pipeline.sinks.header import header_json

Arrays = dict[str, NDArray[Any]]
Save = Callable[[Path, Arrays, str], None]

SHARD_BYTES: Final = 64 * 2**20  # about 310 frames of 273 tokens; saving needs up to three times as much memory

_FRAME_BYTES: Final = 2048  # what a Selection takes beside its patches, about; frames without tokens count too

_TOKEN_TYPES: Final[Mapping[str, type[np.generic]]] = {
    "x": np.int32,
    "y": np.int32,
    "lod": np.uint8,
    "score": np.float32,
    "information": np.float32,
    "perspective": np.float32,
    "age": np.int32,
    "fresh": np.bool_,
}


class ShardPart:
    """One shard, saved by ``save`` under its name when it is closed. See ``rotation.Part``."""

    needs_patches = True
    needs_heat = False
    needs_query = False

    def __init__(self, path: Path | str, save: Save, number: int = 0) -> None:
        self._path = place_of(path)
        self._save = save
        self._number = number
        self._header: Header | None = None
        self._pending: list[Selection] = []
        self.written = 0  # bytes that are held

    def open(self, header: Header) -> None:
        """Make sure that the file can be written. Raises SinkError."""
        claim(self._path, header)
        self._header, self.written = header, 0

    def takes(self, selection: Selection) -> bool:
        """Whether its maps are as large as those before."""
        return not self._pending or _grids(self._pending[-1]) == _grids(selection)

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Keep one record."""
        assert selection.patches is not None, "the selection holds no patches"
        self._pending.append(replace(selection, extras={}))
        maps = sum(values.nbytes for values in selection.maps.values())
        embeddings = 0 if selection.embeddings is None else selection.embeddings.nbytes
        self.written += selection.patches.nbytes + embeddings + maps + _FRAME_BYTES

    def close(self) -> None:
        """Save the shard, which may be one without rows. Raises SinkError."""
        header, self._header = self._header, None
        if header is None:
            return
        selections, self._pending = self._pending, []
        text = json.dumps({**json.loads(header_json(header)), "shard": self._number}, ensure_ascii=False)
        arrays = concatenated(selections)
        selections.clear()
        write_whole(self._path, lambda part: self._save(part, arrays, text))


class ShardSink:
    """Collects Selections with their patches and saves them shard by shard, by ``save``."""

    needs_patches = True
    needs_heat = False
    needs_query = False

    def __init__(self, path: str, save: Save, shard_bytes: int = SHARD_BYTES) -> None:
        if shard_bytes < 1:
            raise ValueError(f"shard_bytes must be at least 1, got {shard_bytes}")
        self._path = place_of(path)
        self._save = save
        self._limit = shard_bytes
        self._header: Header | None = None
        self._shard: ShardPart | None = None
        self._shards = 0  # begun so far, whether or not they could be saved

    def open(self, header: Header) -> None:
        """Make sure that the files can be written, and remove those of an earlier run. Raises SinkError."""
        claim(self._path, header)
        try:
            for stale in (self._path, *_followers(self._path)):
                stale.unlink(missing_ok=True)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        self._header = header

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Keep one record, and save the shard when it is full. Raises SinkError."""
        if self._shard is not None and not self._shard.takes(selection):
            self._save_shard(self._shard)
        shard = self._shard or self._begin()
        shard.write(frame, selection)
        if shard.written >= self._limit:
            self._save_shard(shard)

    def close(self) -> None:
        """Save what is still held; a stream without frames leaves one shard without rows. Raises SinkError."""
        if self._header is not None and self._shards == 0:
            self._begin()
        if self._shard is not None:
            self._save_shard(self._shard)

    def _begin(self) -> ShardPart:
        assert self._header is not None, "the sink is not open"
        number, self._shards = self._shards, self._shards + 1
        self._shard = ShardPart(shard_path(self._path, number), self._save, number)
        self._shard.open(self._header)
        return self._shard

    def _save_shard(self, shard: ShardPart) -> None:
        self._shard = None
        shard.close()


def shard_path(path: Path, number: int) -> Path:
    """The name of one shard: the first is ``path`` itself."""
    return path if number == 0 else path.with_name(f"{path.stem}-{number:05d}{path.suffix}")


def concatenated(selections: Sequence[Selection]) -> Arrays:
    """The arrays of one shard, as in the table above."""
    counts = np.array([len(selection) for selection in selections], np.int64)
    arrays: Arrays = {
        "frame_index": np.array([selection.index for selection in selections], np.int64),
        "time": np.array([selection.time for selection in selections], np.float64),
        "width": np.array([selection.width for selection in selections], np.int32),
        "height": np.array([selection.height for selection in selections], np.int32),
        "keyframe": np.array([selection.keyframe is not None for selection in selections], np.bool_),
        "changed": np.array([selection.changed for selection in selections], np.float64),
        "recomputed": np.array([selection.recomputed for selection in selections], np.float64),
        "offsets": np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
    }
    for name, kind in _TOKEN_TYPES.items():
        columns = [getattr(selection, name) for selection in selections]
        arrays[name] = np.concatenate([np.empty(0, kind), *columns]).astype(kind, copy=False)
    if any(selection.participation is not None for selection in selections):
        arrays["participation"] = np.concatenate([_participation(each) for each in selections])
    regions = [selection.region for selection in selections if selection.region is not None]
    if regions:
        arrays["region"] = np.concatenate(regions)
    if any(selection.maps for selection in selections):
        arrays["maps"] = np.stack([np.stack([*selection.maps.values()]) for selection in selections])
    embeddings = [selection.embeddings for selection in selections if selection.embeddings is not None]
    if embeddings:
        arrays["embeddings"] = np.concatenate(embeddings)
    patches = [selection.patches for selection in selections if selection.patches is not None]
    arrays["patches"] = np.concatenate([np.empty((0, PATCH, PATCH, 3), np.uint8), *patches])
    return arrays


def _grids(selection: Selection) -> list[tuple[int, ...]]:
    """The shapes of the selection's maps."""
    return [values.shape for values in selection.maps.values()]


def _participation(selection: Selection) -> NDArray[np.float32]:
    if selection.participation is None:
        return np.full(len(selection), np.nan, np.float32)
    return selection.participation


def _followers(path: Path) -> list[Path]:
    """The shards after the first that lie there already, in any number."""
    name = re.compile(re.escape(path.stem) + r"-\d{5}" + re.escape(path.suffix))
    return [each for each in path.parent.iterdir() if name.fullmatch(each.name)]
