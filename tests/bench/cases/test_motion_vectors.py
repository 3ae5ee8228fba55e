"""Vectors of a stream become a flow of the right sign and length; the measure tells a right flow from none."""

from pathlib import Path

import numpy as np
import pytest
from av.video.frame import PictureType

from foveate.bench.case import Clip, RedCheckError
from foveate.bench.cases.motion_vectors import (
    cell_flow,
    clip_flows,
    decoded_vectors,
    pan_clip,
    predicted,
    psnr,
    reference_steps,
    warped_cells,
)
from foveate.pipeline.flow import Flow

KINDS = {kind.name: kind for kind in (PictureType.I, PictureType.P, PictureType.B)}
FIELDS = [("source", "i4"), ("w", "u1"), ("h", "u1"), ("dst_x", "i2"), ("dst_y", "i2")]
BLOCK = np.dtype([*FIELDS, ("motion_x", "i4"), ("motion_y", "i4"), ("motion_scale", "u2")])


def test_distances_to_references() -> None:
    assert reference_steps([KINDS[name] for name in "IBBPP"]) == [(1, 3), (1, 2), (2, 1), (3, 1), (1, 1)]


def test_the_flow_of_a_cell_is_the_mean_of_its_blocks_by_area() -> None:
    """Cell (0, 0): 16x8 pixels by 4 and two of 8x8 by -2 and 0 pixels; (0, 1): ahead by 8; (1, 0): nothing."""
    blocks = np.array(
        [
            (-1, 16, 8, 8, 4, 16, -8, 4),
            (-1, 8, 8, 4, 12, -8, 0, 4),
            (-1, 8, 8, 12, 12, 0, 0, 4),
            (1, 16, 16, 24, 8, 32, 0, 4),
        ],
        BLOCK,
    )
    flow = cell_flow(blocks, (1, 2), (2, 2))
    np.testing.assert_allclose(flow.dx, [[(4 * 128 - 2 * 64) / 256 / 16, -8 / 2 / 16], [0, 0]], atol=1e-6)
    np.testing.assert_allclose(flow.dy, [[-2 * 128 / 256 / 16, 0], [0, 0]], atol=1e-6)
    np.testing.assert_array_equal(flow.confidence, [[1, 1], [0, 0]])


def test_without_vectors_nothing_is_known() -> None:
    flow = cell_flow(None, (1, 1), (2, 3))
    assert not np.stack(flow).any()


def test_a_right_flow_predicts_the_frame() -> None:
    """The content was 3 pixels further right and 1 further down: 3/16 and 1/16 of a cell."""
    picture = np.random.default_rng(0).integers(0, 255, (49, 67), np.uint8)
    before, now = picture[:48, :64], picture[1:, 3:]
    flow = Flow(np.full((3, 4), 3 / 16, np.float32), np.full((3, 4), 1 / 16, np.float32), np.ones((3, 4), np.float32))
    np.testing.assert_array_equal(predicted(before, flow)[:-1, :-3], now[:-1, :-3])
    assert predicted(before, None) is before


def test_cells_are_warped_over_the_grid() -> None:
    before = np.repeat(np.array([[10, 20, 30]], np.uint8), 16, axis=0).repeat(16, axis=1)
    flow = Flow(np.full((1, 3), 0.5, np.float32), np.zeros((1, 3), np.float32), np.ones((1, 3), np.float32))
    np.testing.assert_allclose(warped_cells(before, flow), [[15, 25, 30]])


def test_psnr() -> None:
    assert psnr(np.zeros(4), np.full(4, 2.55)) == pytest.approx(40)
    assert psnr(np.zeros(4), np.zeros(4)) == 100


def test_a_pan_is_found(tmp_path: Path, samples: Path) -> None:
    """The view moves 5 pixels right and 2 down a frame, so the content came from there; vectors are whole quarters."""
    clip = pan_clip(tmp_path, 12)
    told = list(decoded_vectors(clip.path, 12))
    steps = reference_steps([each.kind for each in told])
    flows = [
        cell_flow(each.blocks, step, (24, 40))
        for each, step in zip(told, steps, strict=True)
        if each.blocks is not None
    ]
    assert len(flows) == 11
    assert np.median([flow.dx for flow in flows]) == pytest.approx(5 / 16, abs=0.25 / 16)
    assert np.median([flow.dy for flow in flows]) == pytest.approx(2 / 16, abs=0.25 / 16)
    cases = {case["method"]: case for case in clip_flows(clip, 12)}
    assert cases["motion vectors"]["psnr"] > cases["no flow"]["psnr"] + 5
    assert cases["DIS at an eighth"]["psnr"] > cases["no flow"]["psnr"] + 5


def test_a_stream_without_vectors_is_a_red_check(tmp_path: Path, samples: Path) -> None:
    with pytest.raises(RedCheckError, match="no motion vectors"):
        clip_flows(Clip("bunny", samples / "bunny.mp4"), 1)
