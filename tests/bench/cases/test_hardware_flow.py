"""Without the engine's library, the record says so; what it is compared with follows a motion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from foveate.bench.cases import hardware_flow as case
from foveate.bench.cases.motion_vectors import psnr, warped_cells
from foveate.bench.gpu import optical_flow


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Held:
        name, context_handle = "a card", 0

        def __enter__(self) -> Held:
            return self

        def __exit__(self, *_: object) -> None: ...

        def stream(self) -> None: ...

    monkeypatch.setattr(optical_flow, "LIBRARY", "libno-such-library.so.1")
    monkeypatch.setattr(case, "Device", Held)
    case.hardware_flow(out=str(tmp_path / "a.json"))
    told: dict[str, Any] = json.loads((tmp_path / "a.json").read_text())
    assert (told["engine"], told["cases"]) == (False, [])
    assert told["why"] == "the driver's library libno-such-library.so.1 is missing or does not load"


@pytest.mark.parametrize("way", [case.by_dis, case.by_search])
def test_both_searches_of_the_product_follow_a_motion(way: case.Way) -> None:
    """A smooth texture that moves by 5 pixels a frame, to the left: what was there came from the right."""
    noise = np.random.default_rng(4).uniform(0, 255, (260, 420)).astype(np.float32)
    blurred = cv2.GaussianBlur(noise, (0, 0), 12)
    texture = np.clip((blurred - blurred.mean()) * (40 / blurred.std()) + 128, 0, 255).astype(np.uint8)
    lumas = [np.ascontiguousarray(texture[:256, 5 * at : 384 + 5 * at]) for at in range(3)]
    flows = list(way(lumas))
    assert len(flows) == 2
    for before, now, flow in zip(lumas, lumas[1:], flows, strict=False):
        assert flow is not None
        assert np.median(flow.dx[3:-3, 3:-3]) == pytest.approx(5 / 16, abs=0.03)
        assert np.median(flow.dy[3:-3, 3:-3]) == pytest.approx(0, abs=0.03)
        means = now.reshape(16, 16, 24, 16).mean(axis=(1, 3)).astype(np.float32)
        assert psnr(warped_cells(before, flow), means) > psnr(warped_cells(before, None), means) + 3
