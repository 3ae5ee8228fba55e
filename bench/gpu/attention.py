"""Attention that reads fine keys only where coarse ones match, against full attention, on a map of keys and values:

python -m foveate.bench.gpu.attention sample_videos/bunny.mp4 --out gpu_attention.json

The mip pyramid of keys and values is plain tensors in torch: level 0 in blocks of 8x8, and level 3, the blocks' means;
hardware cannot filter 64 or 128 numbers at once, and texture reads do not feed the tensor cores. Queries of a group
share the ``blocks`` whose coarse keys match their mean best; of these all fine keys are read, and the others' coarse
keys each stand for 64. ``self``: every place of the map asks, in groups of 8x8; ``tokens``: 288 places ask, each by
itself. Both ways run in half floats, each as a CUDA graph. Error: of about 64 groups, in float32, the root of the mean
squared difference over that of full attention's output. Needs torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import percentiles, torch_times
from foveate.bench.gpu.scene import pictures
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record

if TYPE_CHECKING:
    import torch

SIDE: Final = 8  # of a block, in keys
HEADS: Final = 4
_MAPS: Final = (32, 64, 128, 256)  # keys along a side: 1k, 4k, 16k, 64k
_DIMENSIONS: Final = (64, 128)
_BLOCKS: Final = (4, 16)
_TOKENS: Final = 288
_CHECKED: Final = 64  # groups of queries whose error is measured
_PATCH: Final = 8  # pixels along a side of what a key of `bunny` shows
_REPLAYS: Final = 20
_WARM: Final = 3
_SEED: Final = 4
_EXACT: Final = 1e-3  # with all fine keys: the kernels for float32 split factors into shorter ones

Map = NDArray[np.float32]
"""[HEADS, side, side, dimension]."""


class Pyramid(NamedTuple):
    """Keys and values of two levels."""

    fine_keys: torch.Tensor  # [heads, blocks, SIDE * SIDE, dimension]
    fine_values: torch.Tensor
    coarse_keys: torch.Tensor  # [heads, blocks, dimension]: means
    coarse_values: torch.Tensor


def gpu_attention(
    clip: Annotated[Positional[str], arg(metavar="FILE", help="A video file, of which one picture makes keys.")],
    out: Out = None,
) -> None:
    """Measure error and device time for 1k to 64k keys of smooth, real and random content."""
    record = new_record("gpu_attention", out, heads=HEADS, tokens=_TOKENS)
    import torch

    record |= {"card": torch.cuda.get_device_name(), "torch": str(torch.__version__)}
    for side, dimension in product(_MAPS, _DIMENSIONS):
        contents = {
            name: [torch.from_numpy(part).cuda() for part in parts]
            for name, parts in content(Path(clip), side, dimension).items()
        }
        for case in _cases(side, dimension, contents):
            record["cases"].append(case)
            errors = ", ".join(f"{name} {error:.2%}" for name, error in case["error"].items())
            say(f"{case['name']}: {case['full_ms']:.3f} ms, {case['ms']:.3f} by levels; error: {errors}")
    hand_out(record, out)


def content(clip: Path, side: int, dimension: int) -> dict[str, tuple[Map, Map, Map]]:
    """Queries, keys and values by name, keys with variance one.

    ``smooth``: random fields that change over a sixteenth of the map, queries are the keys with noise; ``bunny``: keys
    and values are random projections of patches of a picture, queries the keys; ``random``: all are independent.
    """
    rng = np.random.default_rng(_SEED)
    keys, values = (_smooth(rng, side, dimension) for _ in range(2))
    noise = rng.standard_normal(keys.shape, np.float32)
    seen = [_projected(rng, _patches(clip, side), dimension) for _ in range(2)]
    random = [rng.standard_normal(keys.shape, np.float32) for _ in range(3)]
    return {
        "smooth": ((keys + np.float32(0.5) * noise).astype(np.float32), keys, values),
        "bunny": (seen[0], seen[0], seen[1]),
        "random": (random[0], random[1], random[2]),
    }


def _smooth(rng: np.random.Generator, side: int, dimension: int) -> Map:
    coarse = rng.standard_normal((HEADS * dimension, 16, 16), np.float32)
    fields = np.stack([cv2.resize(field, (side, side), interpolation=cv2.INTER_CUBIC) for field in coarse])
    fields /= fields.std()
    return np.ascontiguousarray(fields.reshape(HEADS, dimension, side, side).transpose(0, 2, 3, 1))


def _patches(clip: Path, side: int) -> NDArray[np.float32]:
    """[side, side, values]: the picture scaled to the map, patches without overlap."""
    rgb = cv2.cvtColor(pictures(clip)[0], cv2.COLOR_YUV2RGB_NV12)
    scaled = cv2.resize(rgb, (side * _PATCH, side * _PATCH), interpolation=cv2.INTER_AREA)
    blocks = scaled.reshape(side, _PATCH, side, _PATCH, 3).swapaxes(1, 2).reshape(side, side, -1)
    return blocks.astype(np.float32) - np.float32(blocks.mean())


def _projected(rng: np.random.Generator, patches: NDArray[np.float32], dimension: int) -> Map:
    into = rng.standard_normal((HEADS, patches.shape[-1], dimension)).astype(np.float32)
    made = np.stack([patches @ head for head in into])
    return np.ascontiguousarray(made / made.std())


def in_blocks(values: torch.Tensor) -> torch.Tensor:
    """[heads, side, side, dimension] as [heads, blocks, SIDE * SIDE, dimension]."""
    heads, side, _, dimension = values.shape
    count = side // SIDE
    split = values.reshape(heads, count, SIDE, count, SIDE, dimension)
    return split.transpose(2, 3).reshape(heads, count * count, SIDE * SIDE, dimension)


def pyramid_of(keys: torch.Tensor, values: torch.Tensor) -> Pyramid:
    """Both levels of keys and values that lie in blocks."""
    return Pyramid(keys, values, keys.mean(2), values.mean(2))


def full_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """[heads, groups, queries, dimension] of all keys, as they lie in blocks."""
    from torch.nn.functional import scaled_dot_product_attention

    flat = [part.flatten(1, 2)[None] for part in (queries, keys, values)]
    return scaled_dot_product_attention(*flat)[0].reshape(queries.shape)


def attention_by_levels(queries: torch.Tensor, pyramid: Pyramid, blocks: int) -> torch.Tensor:
    """[heads, groups, queries, dimension]: each group reads the fine keys of the ``blocks`` that match its mean best.

    The other blocks count by their means: a coarse key weighs as much as SIDE * SIDE keys like it.
    """
    import torch

    heads, groups, _, dimension = queries.shape
    there = pyramid.coarse_keys.shape[1]
    best = (queries.mean(2) @ pyramid.coarse_keys.transpose(1, 2)).topk(blocks, sorted=False).indices
    first = torch.arange(heads, device=queries.device)[:, None, None] * there
    keys, values = (
        torch.cat(
            [
                fine.flatten(0, 1)[best + first].flatten(2, 3),
                coarse[:, None].expand(heads, groups, there, dimension),
            ],
            2,
        )
        for fine, coarse in (
            (pyramid.fine_keys, pyramid.coarse_keys),
            (pyramid.fine_values, pyramid.coarse_values),
        )
    )
    weight = queries.new_full((heads, groups, there), 2 * math.log(SIDE)).scatter_(2, best, -math.inf)
    bias = torch.cat([weight.new_zeros(heads, groups, blocks * SIDE * SIDE), weight], 2)[:, :, None]
    return torch.nn.functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=bias.expand(-1, -1, queries.shape[2], -1)
    )


def _cases(side: int, dimension: int, contents: dict[str, list[torch.Tensor]]) -> Iterator[dict[str, Any]]:
    import torch

    there = (side // SIDE) ** 2
    blocked = {name: [in_blocks(part) for part in parts] for name, parts in contents.items()}
    _check(blocked["bunny"])
    halves = [part.half() for part in blocked["bunny"]]
    generator = np.random.default_rng(_SEED)
    places = torch.from_numpy(generator.choice(side * side, _TOKENS, replace=False)).cuda()
    for form in ("self", "tokens"):
        asked = {name: _asked(parts[0], form, places) for name, parts in blocked.items()}
        half = asked["bunny"].half()
        full = _times(lambda: full_attention(half, halves[1], halves[2]))  # noqa: B023 (called at once)
        for blocks in (number for number in _BLOCKS if number < there):
            ours = _times(lambda: attention_by_levels(half, pyramid_of(halves[1], halves[2]), blocks))  # noqa: B023
            errors = {
                name: _error(asked[name][:, :: max(1, asked[name].shape[1] // _CHECKED)], parts[1], parts[2], blocks)
                for name, parts in blocked.items()
            }
            yield {
                "name": f"{form}, {side * side} keys, dimension {dimension}, {blocks} blocks",
                "form": form,
                "keys": side * side,
                "dimension": dimension,
                "blocks": blocks,
                "read_share": (blocks * SIDE * SIDE + there) / side**2,
                "full_ms": float(np.median(full)),
                "ms": float(np.median(ours)),
                "times_faster": float(np.median(full) / np.median(ours)),
                "error": errors,
                "samples": {"full": percentiles(full), "by_levels": percentiles(ours)},
            }


def _asked(queries: torch.Tensor, form: str, places: torch.Tensor) -> torch.Tensor:
    """Queries in groups: blocks of the map, or single ones at ``places``."""
    return queries if form == "self" else queries.flatten(1, 2)[:, places][:, :, None]


def _check(parts: list[torch.Tensor]) -> None:
    """With the fine keys of all blocks it is full attention."""
    queries, keys, values = (part[:, :16] for part in parts)
    wrong = attention_by_levels(queries, pyramid_of(keys, values), 16) - full_attention(queries, keys, values)
    if not float(wrong.abs().max()) <= _EXACT * float(values.abs().max()):
        raise RedCheckError(f"with all keys, attention by levels is off by {float(wrong.abs().max()):g}")


def _error(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, blocks: int) -> float:
    right = full_attention(queries, keys, values)
    wrong = attention_by_levels(queries, pyramid_of(keys, values), blocks) - right
    return float((wrong.square().mean() / right.square().mean()).sqrt())


def _times(attend: Callable[[], Any]) -> list[float]:
    """Milliseconds on the device's clock of each replay of a CUDA graph."""
    import torch

    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            attend()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = attend()
    times = torch_times(graph.replay, _WARM, _REPLAYS)
    del kept
    return times


if __name__ == "__main__":
    run_module(gpu_attention)
