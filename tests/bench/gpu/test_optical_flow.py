"""Vectors of the optical-flow engine become a flow over the cells."""

import numpy as np

from foveate.bench.gpu.optical_flow import cell_flow


def test_the_flow_of_a_cell_is_the_mean_of_its_vectors() -> None:
    """Cells of 16 pixels have 4x4 vectors; one of them has 16 pixels to the right, one half of another 8 up."""
    motion = np.zeros((8, 12, 2), np.float32)
    motion[:4, 4:8, 0] = 16
    motion[4:6, 8:, 1] = -8
    flow = cell_flow(motion, 4)
    assert flow.dx.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert flow.dy.tolist() == [[0, 0, 0], [0, 0, -0.25]]
    assert flow.confidence.tolist() == [[1, 1, 1], [1, 1, 1]]


def test_a_vector_for_each_cell_of_a_quarter_of_the_size() -> None:
    """There a cell has 4 pixels."""
    assert cell_flow(np.full((3, 5, 2), 2, np.float32), 1).dx.tolist() == [[0.5] * 5] * 3
