"""Connected regions over the Grid: what the kernel finds is what OpenCV and a plain search find."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foveate.pipeline.geometry import Geometry
from foveate.pipeline.native.regions import Filling, extreme_sizes, fill_regions, label_regions, weaken_small


def components(present):
    """Each region of a bool[grid] as bool[grid]."""
    count, label = cv2.connectedComponents(present.astype(np.uint8), connectivity=8)
    return [label == number for number in range(1, count)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 60), st.sampled_from([0.1, 0.4, 0.6, 0.95]))
def test_regions_are_those_of_opencv(seed, rows, columns, share):
    random = np.random.default_rng(seed)
    shares = [random.random((rows, columns)).astype(np.float32) for _ in range(3)]
    inside = np.outer(np.arange(rows) < rows - 1, np.arange(columns) < columns - 1) | (rows * columns == 1)
    found = label_regions(shares, inside, 1 - share)
    numbers = []
    present = [(values >= np.float32(1 - share)) & inside for values in shares]
    for plane, (label, cells) in enumerate(zip(found.label, filter(np.any, present), strict=True)):
        expected = components(cells)
        assert (label > 0).sum() == cells.sum()
        for region in expected:
            (number,) = set(label[region].tolist())
            numbers.append(number)
            row, column = np.nonzero(region)
            measures = [len(row), column.min(), row.min(), column.max(), row.max(), plane]
            assert found.measures[number].tolist() == measures
    assert sorted(numbers) == list(range(1, len(found.measures)))

    size = random.random(len(found.measures)).astype(np.float32)
    smallest, largest = extreme_sizes(found, size)
    here = found.label > 0
    np.testing.assert_array_equal(smallest, np.where(here, size[found.label], 1).min(axis=0, initial=1))
    np.testing.assert_array_equal(largest, np.where(here, size[found.label], 0).max(axis=0, initial=0))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 30), st.integers(2, 40))
def test_regions_move_where_what_moves_spans_them(seed, rows, columns):
    random = np.random.default_rng(seed)
    blocks = random.random((2, -(-rows // 4), -(-columns // 5))) < 0.5
    shares = blocks.repeat(4, 1).repeat(5, 2)[:, :rows, :columns].astype(np.float32)
    before = (random.random((rows, columns)) * (random.random((rows, columns)) < 0.7)).astype(np.float32)
    sure, most = before >= 0.5, 0.4 * rows * columns
    came = random.random((rows, columns)) < random.random()
    expected = before.copy()
    for plane in shares:
        for region in components(plane > 0):
            row, column = np.nonzero(region)
            height, width = np.ptp(row) + 1, np.ptp(column) + 1
            front = min(height, width)
            surely = len(np.nonzero(region & sure)[0]) >= max(0.2 * len(row), front)
            lately = (region & (before > 0)).sum() >= front and (region & (sure | came)).sum() >= 0.6 * len(row)
            for holds, part, rims in ((surely, region & sure, 0), (lately, region & (sure | came), 2)):
                if holds and len(row) <= most:
                    seen_row, seen_column = np.nonzero(part)
                    down, across = (np.ptp(each) + 1 for each in (seen_row, seen_column))
                    down, across = down + rims * (height >= 6), across + rims * (width >= 6)
                    if down >= 0.8 * height and across >= 0.8 * width:
                        expected[region] = 1
    moving = before.copy()
    found = label_regions(list(shares), np.ones((rows, columns), np.bool_), 0.5)
    fill_regions(moving, came, found, Filling(0.5, 0.8, 0.2, most, 0.6))
    np.testing.assert_array_equal(moving, expected)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 40), st.sampled_from([0.1, 0.4]))
def test_what_is_small_is_weakened_by_its_sum(seed, rows, columns, share):
    random = np.random.default_rng(seed)
    before = (random.random((rows, columns)) * (random.random((rows, columns)) < share)).astype(np.float32)
    expected = np.zeros((rows, columns))
    for region in components(before > 0):
        expected[region] = before[region] * np.clip((before[region].sum(dtype=float) - 0.5) / 1.5, 0, 1)
    moving = before.copy()
    weaken_small(moving, 0.5, 2)
    np.testing.assert_allclose(moving, expected, atol=1e-6)  # a sum, a ratio and a product, each rounded to float32


def test_a_spiral_is_one_region():
    """Joined only at its end, after its turns had labels of their own."""
    present = np.zeros((9, 9), np.float32)
    present[0] = present[8] = present[:, 8] = present[2:, 0] = 1
    present[2, :7] = present[6, 2:7] = present[4:7, 6] = present[4, 4:7] = 1
    found = label_regions([present], np.ones((9, 9), np.bool_), 0.5)
    assert found.cells[1:].tolist() == [np.count_nonzero(region) for region in components(present > 0)]


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="contiguous float32"):
        label_regions([np.zeros((2, 3), np.float32)], Geometry(64, 64).inside, 0.5)
