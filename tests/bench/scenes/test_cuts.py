"""Generated clips have their cuts, and what is none, where they say."""

import numpy as np
import pytest

from foveate.bench.scenes.cuts import CUTS, HALF, HEIGHT, WIDTH, clip
from foveate.bench.scenes.no_cuts import NO_CUTS

KINDS = {**CUTS, **NO_CUTS}


def shot(left: int, right: int) -> list[np.ndarray]:
    """Grey on the left, another grey on the right; 48 frames."""
    picture = np.full((40, 60, 3), left, np.uint8)
    picture[:, 30:] = right
    return [picture] * 2 * HALF


ONE, OTHER = shot(60, 100), shot(180, 140)


def halves(name: str) -> np.ndarray:
    """Mean grey of the left and the right quarter of each frame: float64[48, 2]."""
    frames = list(clip(KINDS[name], ONE, OTHER, 0))
    return np.array([(frame[:, : WIDTH // 4].mean(), frame[:, -WIDTH // 4 :].mean()) for frame in frames])


@pytest.mark.parametrize("name", KINDS)
def test_every_clip_has_frames_of_one_size_and_its_cuts_among_them(name: str) -> None:
    frames = list(clip(KINDS[name], ONE, OTHER, 1))
    assert len(frames) == (HALF if name == "a second left out" else 2 * HALF)
    assert all(frame.shape == (HEIGHT, WIDTH, 3) and frame.dtype == np.uint8 for frame in frames)
    assert all(0 < frame < len(frames) for cut in KINDS[name].cuts for frame in cut)
    assert bool(KINDS[name].cuts) == (name in CUTS)


def test_cuts_are_where_they_are_said_to_be() -> None:
    assert halves("cut")[HALF - 1 : HALF + 1] == pytest.approx(np.array([[60, 100], [180, 140]]), abs=0.1)
    assert halves("cut to the mirror image")[HALF] == pytest.approx([100, 60], abs=0.1)
    assert halves("cut in the dark")[HALF] == pytest.approx([16 + 0.15 * 164, 16 + 0.15 * 124], abs=0.1)
    assert halves("cut behind black frames")[HALF - 4 : HALF + 1, 0] == pytest.approx([60, 16, 16, 16, 180], abs=0.1)
    assert halves("fade through black to another shot")[HALF - 1 : HALF + 1, 0] == pytest.approx(
        [16 + 44 / 24, 16 + 164 / 24], abs=0.1
    )


def test_what_is_no_cut_is_as_described() -> None:
    assert halves("dissolve, 12 frames")[HALF] == pytest.approx([120, 120], abs=0.6)
    assert halves("wipe")[HALF, 0] == pytest.approx(180, abs=0.1)
    assert halves("wipe")[HALF, 1] == pytest.approx(100, abs=0.1)
    assert halves("flash")[[HALF, HALF + 12], 0] == pytest.approx([235, 104], abs=0.1)
    assert halves("exposure, darker")[[HALF - 1, HALF], 0] == pytest.approx([60, 16 + 0.4 * 44], abs=0.6)
    assert halves("bars")[HALF, 0] == pytest.approx((16 + 60) / 2, abs=0.1)
    assert halves("hand over the lens")[HALF] == pytest.approx([60, 60], abs=6)
    assert halves("hand over the lens")[-1] == pytest.approx([60, 100], abs=4)
    assert halves("object close by")[HALF - 3, 0] == pytest.approx(180, abs=1)
    assert halves("object close by")[-1] == pytest.approx([60, 100], abs=0.1)
