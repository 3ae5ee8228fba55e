"""Stream memory with the Cascade's kernels: a still scene comes to rest, and what has left is not seen any longer."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline.frames import Colour, Frame
from foveate.pipeline.settings import Settings
from tests.cuda.test_cascade import agree, pairs

__all__ = ["pairs"]

pytestmark = pytest.mark.gpu

HEIGHT, WIDTH = 272, 400
PATIENCE = 30  # frames


def bars() -> NDArray[np.uint8]:
    """Of unequal widths, whose edges lie anywhere in a cell."""
    random = np.random.default_rng(0)
    edges = np.sort(random.integers(0, WIDTH, 12))
    return random.integers(0, 256, 13, np.uint8)[np.searchsorted(edges, np.arange(WIDTH))][None].repeat(HEIGHT, 0)


def pattern() -> NDArray[np.uint8]:
    """A ramp, blocks, thin lines and noise."""
    random = np.random.default_rng(1)
    picture = np.linspace(0, 255, WIDTH).astype(np.uint8)[None].repeat(HEIGHT, 0)
    for _ in range(12):
        top, left = random.integers(0, HEIGHT - 60), random.integers(0, WIDTH - 60)
        picture[top : top + random.integers(1, 60), left : left + random.integers(1, 60)] = random.integers(0, 256)
    picture[200:240, 100:180] = random.integers(0, 256, (40, 80))
    return picture


def checks() -> NDArray[np.uint8]:
    """Of 32 pixels: each is one sample of level 5, so that a token of LOD 5 seems to show all, but it is enlarged."""
    return ((np.add.outer(np.arange(HEIGHT) // 32, np.arange(WIDTH) // 32) % 2) * 200).astype(np.uint8)


def frames_of(pictures: Sequence[NDArray[np.uint8]]) -> Iterator[Frame]:
    chroma = np.full((-(-HEIGHT // 2), -(-WIDTH // 2)), 128, np.uint8)
    for index, picture in enumerate(pictures):
        yield Frame(index, index / 25, picture, (chroma, chroma), Colour())


def walk() -> list[NDArray[np.uint8]]:
    """A bright square that rests on darker texture, and then moves."""
    random = np.random.default_rng(3)
    texture = random.integers(70, 150, (HEIGHT // 16, WIDTH // 20), np.uint8).repeat(16, 0).repeat(20, 1)
    square, pictures = random.integers(190, 255, (128, 128), np.uint8), []
    for step in [0] * 6 + list(range(24)):
        picture = texture.copy()
        picture[20 + 2 * step : 148 + 2 * step, 10 * step : 128 + 10 * step] = square
        pictures.append(picture)
    return pictures


@pytest.mark.parametrize("kind", [bars, pattern])
@pytest.mark.parametrize(
    "settings", [{}, {"query": ("dark",)}, {"allocation": {"merge": 2}}, {"allocation": {"merge": 3}}]
)
def test_a_still_picture_is_sent_once(kind: Any, settings: Any, pairs: Any) -> None:
    """It rests for 36 frames with periodic keyframes in between, changes in one place, and rests again."""
    still = kind()
    other = still.copy()
    other[90:130, 150:200] = 255 - still[90:130, 150:200]
    allocation = {"memory": "stream", **settings.get("allocation", {})}
    chosen = Settings(**{**settings, "budget": 80, "allocation": allocation, "change": {"keyframe_interval": 8}})
    sent = []
    for mine, cpu in pairs(chosen).run(frames_of([still] * 36 + [other] * 36)):
        agree(mine, cpu, f"frame {mine.index}")
        sent.append(len(mine))
    assert sent[PATIENCE:36] == [0] * 6
    assert sum(sent[36:]) > 0
    assert sent[36 + PATIENCE :] == [0] * 6


@pytest.mark.parametrize("noise", [1, 3])
@pytest.mark.parametrize("merge", [1, 2])
def test_noise_that_a_keyframe_writes_is_not_sent(noise: int, merge: int, pairs: Any) -> None:
    """A camera stands still, and the light gets lower after a while: the tokens are the CPU's."""
    random, still = np.random.default_rng(4), pattern() // 2 + 60.0
    pictures = [
        np.clip(np.rint(still - max(at - 30, 0) + random.normal(0, noise, still.shape)), 0, 255).astype(np.uint8)
        for at in range(60)
    ]
    chosen = Settings(budget=80, allocation={"memory": "stream", "merge": merge}, change={"keyframe_interval": 8})
    sent = []
    for mine, cpu in pairs(chosen).run(frames_of(pictures)):
        agree(mine, cpu, f"frame {mine.index}")
        sent.append(len(mine))
    assert sum(sent[30:]) > 0


@pytest.mark.parametrize(("budget", "merge"), [(1, 1), (3, 1), (12, 2), (9, 3)])
def test_what_tokens_coarser_than_lod_4_left_is_known_as_well(budget: int, merge: int, pairs: Any) -> None:
    """The picture takes 4 tokens of LOD 4, or one group of them: lower budgets begin with coarser ones."""
    allocation = {"memory": "stream", "merge": merge}
    settings = Settings(budget=budget, query=("dark",), allocation=allocation)
    coarsest = 0
    for mine, cpu in pairs(settings).run(frames_of([checks()] * 40)):
        agree(mine, cpu, f"frame {mine.index}")
        coarsest = max(coarsest, int(mine.lod.max(initial=0)))
    assert (coarsest > 4) == (merge == 1)


@pytest.mark.parametrize("budget", [20, 34])
def test_what_a_query_marked_and_has_left_is_shown_once_more(budget: int, pairs: Any) -> None:
    """The same tokens as the CPU engine's, which a test of its own holds against the true scene."""
    settings = Settings(budget=budget, query=("moving",), allocation={"memory": "stream"})
    for mine, cpu in pairs(settings).run(frames_of(walk())):
        places = [(one.lod.tolist(), one.x.tolist(), one.y.tolist()) for one in (mine, cpu)]
        assert places[0] == places[1], f"frame {mine.index}"
