"""Cuts are found where frames stop resembling the ones before; light, and a frame of nothing, are no cuts."""

from __future__ import annotations

import numpy as np
import pytest

from foveate.bench.cases.volume_cuts import cuts_at_once, cuts_later, likeness, shows, structures
from foveate.bench.scenes.cuts import HALF, KINDS, scene

RANDOM = np.random.default_rng(1)
ONE, OTHER, THIRD = (RANDOM.normal(0, 10, (6, 8)).astype(np.float32) for _ in range(3))


def test_likeness() -> None:
    one, other = np.array([[1, 0]], np.float32), np.array([[1, 1]], np.float32)
    assert likeness(one, other) == pytest.approx(0.5**0.5)
    assert likeness(one, -3 * one) == pytest.approx(-1)
    assert likeness(one, 0 * one) == 0


def test_structure_is_what_differs_from_its_neighbourhood() -> None:
    """One bright cell among 5x5 loses a 25th of itself; a plain picture shows nothing."""
    luma = np.zeros((80, 80), np.uint8)
    luma[32:48, 32:48] = 250
    (found,) = structures([luma])
    assert found[2, 2] == pytest.approx(240)
    assert found[0, 0] == pytest.approx(-10)
    assert shows(found)
    assert not shows(structures([np.full((80, 80), 90, np.uint8)])[0])


def test_a_cut_is_found_once_and_a_return_is_none() -> None:
    assert cuts_at_once([ONE, ONE, ONE, OTHER, OTHER]) == {3}
    assert cuts_at_once([ONE, ONE, 3 * ONE, ONE]) == set()
    flash = [ONE, ONE, ONE, OTHER, ONE, ONE]
    assert cuts_at_once(flash) == {3}
    assert cuts_later(flash, {3}) == set()
    assert cuts_later([ONE, ONE, OTHER, OTHER], {2}) == {2}
    assert cuts_at_once([ONE, OTHER, THIRD]) == set()
    assert cuts_at_once(flash, 1) == {3, 4}


def test_scenes() -> None:
    one = [np.full((40, 60), 80, np.uint8)] * 2 * HALF
    other = [np.full((40, 60), 160, np.uint8)] * 2 * HALF
    means = {kind: [float(frame.mean()) for frame in scene(kind, one, other, 0)[0]] for kind in KINDS}
    assert all(len(values) == 2 * HALF for values in means.values())
    assert means["cut"][HALF - 1 : HALF + 1] == pytest.approx([80, 160], abs=0.1)
    assert means["dissolve"][HALF] == pytest.approx(120, abs=0.1)
    assert min(means["fade"]) == pytest.approx(16 + (80 - 16) / 24, abs=0.1)
    assert means["flash"][HALF] == pytest.approx(235, abs=0.1)
    assert means["flash"][HALF + 12] == pytest.approx(160, abs=0.1)
    assert max(means["flicker"]) == pytest.approx(80 * (1 + 0.15 * np.sin(2 * np.pi / 5)), abs=0.1)
    assert scene("cut", one, other, 0)[1] == {HALF}
    assert not scene("pan", one, other, 0)[1]
