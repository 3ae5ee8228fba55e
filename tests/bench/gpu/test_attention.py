"""Attention by levels, on the CPU: where it must equal full attention, and what its content is."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from foveate.bench.gpu.attention import (  # noqa: E402
    HEADS,
    attention_by_levels,
    content,
    full_attention,
    in_blocks,
    pyramid_of,
)

SIDE, DIMENSION = 32, 16
BLOCKS = (SIDE // 8) ** 2


def maps(seed: int, count: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [in_blocks(torch.randn(HEADS, SIDE, SIDE, DIMENSION, generator=generator)) for _ in range(count)]


def softmax_attention(queries: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """In float64, key by key."""
    flat = [part.flatten(1, 2).double() for part in (queries, keys, values)]
    weights = torch.softmax(flat[0] @ flat[1].transpose(1, 2) / DIMENSION**0.5, -1)
    return (weights @ flat[2]).reshape(queries.shape)


def test_blocks_are_8x8_neighbours() -> None:
    numbers = torch.arange(SIDE * SIDE).reshape(1, SIDE, SIDE, 1)
    blocks = in_blocks(numbers)
    assert blocks.shape == (1, BLOCKS, 64, 1)
    assert blocks[0, 0, :, 0].tolist() == [SIDE * (at // 8) + at % 8 for at in range(64)]
    assert blocks[0, 5, 0, 0] == SIDE * 8 + 8


@pytest.mark.parametrize("group", [64, 1])
def test_with_all_fine_keys_it_is_full_attention(group: int) -> None:
    queries, keys, values = maps(1, 3)
    queries = queries.reshape(HEADS, -1, group, DIMENSION)[:, :40]
    wanted = softmax_attention(queries, keys, values)
    assert (full_attention(queries, keys, values) - wanted).abs().max() < 1e-4
    assert (attention_by_levels(queries, pyramid_of(keys, values), BLOCKS) - wanted).abs().max() < 1e-4


def test_coarse_keys_stand_for_what_they_are_the_mean_of() -> None:
    # Where all keys of a block are equal, nothing is lost, whichever blocks are read.
    queries, keys, values = maps(2, 3)
    keys = keys[:, :, :1].expand_as(keys)
    found = attention_by_levels(queries, pyramid_of(keys, values), 2)
    assert (found - softmax_attention(queries, keys, values)).abs().max() < 1e-4


def test_fine_keys_are_read_where_coarse_ones_match() -> None:
    # One block's keys match the queries, and its values differ from key to key, as do those of the others.
    _, keys, values = maps(3, 3)
    wanted = 6
    keys = 0.01 * keys
    keys[:, wanted] += torch.linspace(2, 6, 64)[:, None]
    queries = torch.ones(HEADS, 3, 1, DIMENSION)
    exact = softmax_attention(queries, keys, values)
    found = attention_by_levels(queries, pyramid_of(keys, values), 1)
    assert (found - exact).abs().max() < 1e-3
    blurred = values[:, wanted].mean(1)[:, None, None].expand_as(exact)
    assert (blurred - exact).abs().max() > 0.3


def test_contents(samples: Path) -> None:
    made = content(samples / "bunny.mp4", SIDE, DIMENSION)
    assert list(made) == ["smooth", "bunny", "random"]
    steps = {}
    for name, parts in made.items():
        for part in parts:
            assert part.shape == (HEADS, SIDE, SIDE, DIMENSION)
            assert part.dtype == np.float32
        keys = parts[1]
        assert keys.std() == pytest.approx(1, abs=0.05)
        steps[name] = float(np.square(np.diff(keys, axis=2)).mean())
    assert steps["smooth"] < 1 < steps["random"]
    assert steps["bunny"] < steps["random"]
