"""The comparison of scene cuts: how they are counted, and a run on one clip."""

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.cases.scene_cuts import PRODUCT, counted, kind_cases, real_cases, scene_cuts, table
from foveate.bench.peers.cuts import PEERS
from foveate.bench.scenes.cuts import CUTS, HALF
from foveate.pipeline.errors import SettingsError


def shot(seed: int) -> list[np.ndarray]:
    """A picture of large cells in colours of their own, 48 times."""
    cells = np.random.default_rng(seed).integers(40, 200, (24, 40, 3), dtype=np.uint8)
    return [cells.repeat(16, 0).repeat(16, 1)] * 2 * HALF


def test_counted() -> None:
    assert counted([range(24, 25)], {24}) == {"cuts": 1, "found": 1, "false": 0}
    assert counted([range(24, 36)], {23, 30, 31}) == {"cuts": 1, "found": 1, "false": 2}
    assert counted([], {3}) == {"cuts": 0, "found": 0, "false": 1}


def test_a_cut_is_found_by_all(tmp_path: Path) -> None:
    pytest.importorskip("scenedetect")
    cases = kind_cases("cut", CUTS["cut"], [shot(1), shot(2)], tmp_path / "clip.mp4")
    assert [case["method"] for case in cases] == [PRODUCT, *PEERS]
    assert all((case["cuts"], case["found"], case["false"]) == (2, 2, 0) for case in cases)
    real = real_cases({tmp_path / "clip.mp4": [HALF]})
    assert all(case["said"] == [HALF] and case["found"] == 1 for case in real)
    assert "| cut | 2 of 2, 0 | 2 of 2, 0 |" in table(cases)


def test_a_file_is_given_with_numbers() -> None:
    with pytest.raises(SettingsError, match="a file is given with the frames of its cuts"):
        scene_cuts(("clip.mp4:first",))
