"""Other ways to find scene cuts: each finds one between two pictures, and none in a picture that stays."""

import numpy as np
import pytest

from foveate.bench.peers.cuts import PEERS, lasting, likeness, shows, structures, volume_cuts

RANDOM = np.random.default_rng(1)
ONE, OTHER, THIRD = (RANDOM.normal(0, 10, (6, 8)).astype(np.float32) for _ in range(3))


def picture(seed: int) -> np.ndarray:
    """Cells of 16x16 pixels in colours of their own."""
    cells = np.random.default_rng(seed).integers(0, 256, (8, 12, 3), dtype=np.uint8)
    return cells.repeat(16, 0).repeat(16, 1)


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_finds_a_cut(name: str) -> None:
    if name.startswith("PySceneDetect"):
        pytest.importorskip("scenedetect")
    assert PEERS[name]([picture(1)] * 20 + [picture(2)] * 20) == {20}
    assert PEERS[name]([picture(1)] * 40) == set()


def test_likeness() -> None:
    one, other = np.array([[1, 0]], np.float32), np.array([[1, 1]], np.float32)
    assert likeness(one, other) == pytest.approx(0.5**0.5)
    assert likeness(one, -3 * one) == pytest.approx(-1)
    assert likeness(one, 0 * one) == 0


def test_structure_is_what_differs_from_its_neighbourhood() -> None:
    """One bright cell among 5x5 loses a 25th of itself; a plain picture shows nothing."""
    frame = np.zeros((80, 80, 3), np.uint8)
    frame[32:48, 32:48] = 250
    (found,) = structures([frame])
    assert found[2, 2] == pytest.approx(240)
    assert found[0, 0] == pytest.approx(-10)
    assert shows(found)
    assert not shows(structures([np.full((80, 80, 3), 90, np.uint8)])[0])


def test_a_cut_is_found_once_and_a_return_is_none() -> None:
    assert volume_cuts([ONE, ONE, ONE, OTHER, OTHER]) == {3}
    assert volume_cuts([ONE, ONE, 3 * ONE, ONE]) == set()
    flash = [ONE, ONE, ONE, OTHER, ONE, ONE]
    assert volume_cuts(flash) == {3}
    assert lasting(flash, {3}) == set()
    assert lasting([ONE, ONE, OTHER, OTHER], {2}) == {2}
    assert volume_cuts([ONE, OTHER, THIRD]) == set()
