"""An experiment: channels of 8 bits, or in blocks as BC4 has them, against half floats: bytes, time, and the ranking.

python -m foveate.bench.cases.compressed_channels --out compressed_channels.json

The channels that the score is made of are taken over the Grid, stored, read back, and scored; the reference is float32.
BC4 (as Direct3D 11 defines it) has two end points of 8 bits and 16 indices of 3 bits for 4x4 values: 8 bytes. The
default strategy does not read the score, so what changes are the strategies that do.
"""

import time
from collections.abc import Callable, Mapping
from itertools import islice
from statistics import fmean, median
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import Clip
from foveate.bench.cases.ranking import agreement
from foveate.bench.clips.samples import SAMPLES, clips_of
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.records.table import methods_table, say
from foveate.bench.records.writing import hand_out, method_cases, new_record
from foveate.pipeline import open_stream
from foveate.pipeline.cascade.scores import score_cells
from foveate.pipeline.geometry import Map, as_blocks

CHANNELS: Final = ("edges", "edges_inverted", "highpass", "edge_distance", "saliency", "motion", "eccentricity")
"""What the score is made of; each in [0, 1]."""
_SIDE: Final = 4
_STEPS: Final = 7  # from one end point of a block to the other


class Blocks(NamedTuple):
    """A map in 4x4 blocks: end points uint8[2, rows / 4, columns / 4], and indices uint8[rows, columns] from 0 to 7."""

    ends: NDArray[np.uint8]
    indices: NDArray[np.uint8]


def to_bytes(values: Map) -> NDArray[np.uint8]:
    """Values in [0, 1] as 0 to 255."""
    return np.rint(np.clip(values, 0, 1) * np.float32(255)).astype(np.uint8)


def from_bytes(stored: NDArray[np.uint8]) -> Map:
    """What ``to_bytes`` was given, to half a step of 1/255."""
    return stored.astype(np.float32) * np.float32(1 / 255)


def to_blocks(values: Map) -> Blocks:
    """A map of whole blocks, in [0, 1]; the end points are each block's least and greatest value."""
    grey = to_bytes(values)
    blocks = as_blocks(grey, _SIDE)
    low, high = blocks.min(axis=(1, 3)), blocks.max(axis=(1, 3))
    span = np.maximum(high.astype(np.float32) - low, 1)[:, None, :, None]
    indices = np.rint((blocks - low[:, None, :, None].astype(np.float32)) * (_STEPS / span)).astype(np.uint8)
    return Blocks(np.stack([low, high]), indices.reshape(values.shape))


def from_blocks(stored: Blocks) -> Map:
    """The values that the blocks hold, float32[rows, columns]."""
    low, high = (end.astype(np.float32)[:, None, :, None] for end in stored.ends)
    values = low + as_blocks(stored.indices, _SIDE) * ((high - low) / np.float32(_STEPS))
    return np.asarray(values.reshape(stored.indices.shape) * np.float32(1 / 255), np.float32)


class Format(NamedTuple):
    """How a map is stored: bytes per value, and there and back."""

    size: float
    store: Callable[[Map], Any]
    read: Callable[[Any], Map]


FORMATS: Final[Mapping[str, Format]] = {
    "half floats": Format(2, lambda values: values.astype(np.float16), lambda stored: stored.astype(np.float32)),
    "8 bits": Format(1, to_bytes, from_bytes),
    "BC4": Format(0.5, to_blocks, from_blocks),
}


def compressed_channels(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE ...", help="Default: the three samples.")] = (),
    out: Out = None,
    frames: Annotated[int, arg(metavar="N", help="Frames of each clip.")] = 60,
) -> None:
    """Compare channels in formats of 16, 8 and 4 bits, by bytes, time and the ranking of the cells."""
    check_least(2, frames=frames)
    record = new_record("compressed_channels", out, channels=list(CHANNELS))
    for clip in clips_of(files, *SAMPLES):
        record["cases"] += clip_formats(clip, frames)
    say(methods_table("Spearman, top 273, ms", record["cases"], "clip", _shown))
    hand_out(record, out)


def _shown(case: Mapping[str, Any]) -> str:
    return f"{case['spearman']:.4f}, {case['top']:.3f}, {case['store_ms'] + case['read_ms']:.2f}"


def clip_formats(clip: Clip, frames: int) -> list[dict[str, Any]]:
    """A case for each format, with means over the frames.

    ``spearman``: rank correlation of the cells' scores with those of float32. ``top`` and ``top_tenth``: shares of the
    273, and of the tenth, with the highest scores that are the same. ``channel_bytes`` of a frame; medians of the
    processor time of storing and reading them, in ms.
    """
    with open_stream(str(clip.path), maps=CHANNELS) as stream:
        maps = [{name: whole(selection.maps[name]) for name in CHANNELS} for selection in islice(stream, frames)]
    return method_cases(clip, len(maps), {name: _figures(maps, form) for name, form in FORMATS.items()})


def whole(values: Map) -> Map:
    """The map with its edge repeated up to whole blocks."""
    rows, columns = values.shape
    return np.pad(values, ((0, -rows % _SIDE), (0, -columns % _SIDE)), mode="edge")


def _figures(maps: list[dict[str, Map]], form: Format) -> dict[str, Any]:
    store_ms, read_ms, agreements = [], [], []
    for channels in maps:
        began = time.process_time()
        stored = {name: form.store(values) for name, values in channels.items()}
        middle = time.process_time()
        found = {name: form.read(values) for name, values in stored.items()}
        read_ms.append(1000 * (time.process_time() - middle))
        store_ms.append(1000 * (middle - began))
        agreements.append(agreement(score(channels), score(found)))
    spearman, top, tenth = (list(each) for each in zip(*agreements, strict=True))
    return {
        "channel_bytes": round(form.size * sum(values.size for values in maps[0].values())),
        "spearman": fmean(spearman),
        "spearman_least": min(spearman),
        "top": fmean(top),
        "top_tenth": fmean(tenth),
        "store_ms": median(store_ms),
        "read_ms": median(read_ms),
        "samples": {"spearman": spearman, "top": top, "top_tenth": tenth},
    }


def score(channels: dict[str, Map]) -> Map:
    """The default score without a query, of cells that all changed: float32[cells]."""
    return score_cells(channels, None, np.ones(channels["edges"].shape, np.bool_)).score.ravel()


if __name__ == "__main__":
    run_module(compressed_channels)
