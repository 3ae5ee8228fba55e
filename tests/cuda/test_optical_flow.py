"""The card's optical-flow engine, where it has one."""

import numpy as np
import pytest

from foveate.bench.cases.motion_vectors import psnr, warped_cells
from foveate.bench.gpu.optical_flow import OpticalFlowEngine, cell_flow
from foveate.cuda.driver.device import Device
from foveate.pipeline.errors import EngineError


@pytest.mark.gpu
def test_a_known_motion_is_found(device: Device) -> None:
    """A smooth texture that moves by 6 pixels: the cells' means are then predicted far better than by none."""
    noise = np.random.default_rng(2).uniform(0, 255, (26, 42))
    texture = np.kron(noise, np.ones((16, 16)))
    for _ in range(3):
        texture = (texture + np.roll(texture, 7, 0) + np.roll(texture, 7, 1) + np.roll(texture, -5, 1)) / 4
    before, now = (np.ascontiguousarray(texture[32:352, 32 + at : 544 + at].astype(np.uint8)) for at in (0, 6))
    try:
        engine = OpticalFlowEngine(device, device.stream(), 512, 320, "slow")
    except EngineError as error:
        pytest.skip(str(error))
    try:
        engine.upload(before)
        engine.upload(now)
        engine.execute()
        flow = cell_flow(engine.motion(), 4)
    finally:
        engine.close()
    inner = np.s_[3:-3, 3:-3]
    assert np.median(flow.dx[inner]) == pytest.approx(6 / 16, abs=0.02)
    assert np.median(flow.dy[inner]) == pytest.approx(0, abs=0.02)
    means = now.reshape(20, 16, 32, 16).mean(axis=(1, 3)).astype(np.float32)
    assert (
        psnr(warped_cells(before, flow)[inner], means[inner])
        > psnr(warped_cells(before, None)[inner], means[inner]) + 6
    )
