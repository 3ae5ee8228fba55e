"""Embeddings of a stream: regions, carrying along the flow, when they are encoded anew, the thread and its errors."""

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from foveate.pipeline.encoders.crops import whole_picture, windows
from foveate.pipeline.encoders.embedder import DenseEmbedder
from foveate.pipeline.encoders.flow_track import FlowTrack
from foveate.pipeline.encoders.pca import Projection
from foveate.pipeline.flow import Flow
from foveate.pipeline.frames import Colour, Frame, LiveTimes
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.query.encoder import EmbedderInput
from foveate.pipeline.settings import ClipSettings

Array = NDArray[Any]
LIMIT = 10.0  # seconds for what takes none
SIZE = (128, 192)  # 8 rows and 12 columns of cells
GEOMETRY = Geometry(SIZE[1], SIZE[0])


class GreyEncoder:
    """Stands for a model: a part's vector is (mean of the picture's red, 1, 0), not scaled; one part per 16 pixels."""

    id, dimension, resolution, sharpness = "grey", 3, 64, 10.0

    def __init__(self) -> None:
        self.encoded: list[tuple[int, int]] = []  # the sizes of what was encoded
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.fault: Exception | None = None

    def encode_texts(self, texts: Sequence[str]) -> Array:
        raise NotImplementedError

    def cuts(self, text: str) -> bool:
        return False

    def encode_image(self, rgb: Array, longest: int) -> Array:
        assert self.gate.wait(LIMIT)
        if self.fault is not None:
            raise self.fault
        self.encoded.append(rgb.shape[:2])
        self.threads.add(threading.current_thread().name)
        rows, columns = rgb.shape[0] // 16, rgb.shape[1] // 16
        red = rgb[: rows * 16, : columns * 16, 0].reshape(rows, 16, columns, 16).mean(axis=(1, 3))
        return np.stack([red, np.ones_like(red), np.zeros_like(red)], -1).astype(np.float32)


PLAIN = Projection("grey", np.zeros(3, np.float32), np.eye(3, dtype=np.float32), np.ones(3, np.float32), {})


def view(
    shown: Frame,
    flow: Flow | None = None,
    changed: Array | None = None,
    valid: Array | None = None,
    first: bool = False,
) -> EmbedderInput:
    """One frame as the Cascade shows it; without more, nothing changed."""
    none, every = np.zeros((8, 12), np.bool_), np.ones((8, 12), np.bool_)
    changed = none if changed is None else changed
    valid = every if valid is None else valid
    return EmbedderInput(shown, GEOMETRY, "first" if first else None, changed, flow, valid, {})


def frame(cells: Array, live: bool = False) -> Frame:
    """A grey picture with one value per cell, uint8[8, 12]."""
    times = LiveTimes(0.0, 0.0) if live else None
    luma = cells.astype(np.uint8).repeat(16, axis=0).repeat(16, axis=1)
    return Frame(0, 0.0, luma, None, Colour(full_range=True), live=times)


def embedder(encoder: GreyEncoder, **settings: Any) -> DenseEmbedder:
    return DenseEmbedder(encoder, PLAIN, ClipSettings(**settings), GEOMETRY)


def shifted(cells: Array, by: int) -> Array:
    """Moved to the right by whole cells; the left edge repeats."""
    return np.roll(cells, by, axis=1) if by == 0 else np.concatenate([cells[:, :1].repeat(by, 1), cells[:, :-by]], 1)


def to_the_right(by: float) -> Flow:
    full = np.ones((8, 12), np.float32)
    return Flow(-by * full, 0 * full, full)


CELLS = np.arange(96).reshape(8, 12) * 2 + 20


def test_the_first_frame_is_encoded_whole_and_its_vectors_are_the_cells() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder)
    first = embedding.update(view(frame(CELLS), first=True))
    embedding.close()
    assert first is not None
    assert first.age == 0
    assert first.coefficients.shape == (16, 8, 12)
    np.testing.assert_allclose(first.coefficients[0], CELLS, atol=0.51)  # 8-bit grey
    assert (first.coefficients[1] == 1).all()
    assert not first.coefficients[2:].any()
    assert encoder.encoded == [SIZE]


def test_what_moves_is_carried_and_not_encoded() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder)
    first = embedding.update(view(frame(CELLS), first=True))
    assert first is not None
    before = first.coefficients.copy()
    for step in (1, 2, 3):
        moved = np.ones((8, 12), np.bool_)
        now = embedding.update(view(frame(shifted(CELLS, step)), changed=moved, flow=to_the_right(1)))
        assert now is not None
        assert now.age == step
        np.testing.assert_allclose(now.coefficients[0], shifted(before[0], step), atol=1e-4)
    embedding.close()
    np.testing.assert_array_equal(first.coefficients, before)  # what was handed out stays as it is
    assert encoder.encoded == [SIZE]


def test_small_motion_adds_up_without_blur() -> None:
    """Ten steps of a tenth of a cell are one cell: a single bright cell must stay one."""
    spot = np.zeros((8, 12))
    spot[4, 4] = 200
    embedding = embedder(GreyEncoder())
    now = embedding.update(view(frame(spot), first=True))
    for _ in range(10):
        now = embedding.update(view(frame(spot), flow=to_the_right(0.1)))
    embedding.close()
    assert now is not None
    assert now.coefficients[0, 4, 5] > 190  # OpenCV rounds the place to a 32nd of a cell: 3% of 200
    assert now.coefficients[0, 4, [3, 4, 6, 7]].max() < 10


def test_enough_lost_cells_encode_anew_and_fewer_do_not() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder, stale=0.25)
    embedding.update(view(frame(CELLS), first=True))
    valid = np.ones((8, 12), np.bool_)
    valid[:2] = False  # a quarter: not more than the setting
    embedding.update(view(frame(CELLS), valid=valid))
    assert len(encoder.encoded) == 1
    valid[2, 0] = False
    assert embedding.update(view(frame(CELLS + 5), valid=valid)).age == 0  # type: ignore[union-attr]
    embedding.update(view(frame(CELLS)))
    embedding.close()
    assert len(encoder.encoded) == 2


def test_a_changed_picture_is_encoded_again_after_the_interval_and_a_resting_one_is_not() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder, interval=4)
    embedding.update(view(frame(CELLS), first=True))
    for _ in range(6):
        embedding.update(view(frame(CELLS)))
    assert len(encoder.encoded) == 1
    changed = np.zeros((8, 12), np.bool_)
    changed[3, 3] = True
    ages = [embedding.update(view(frame(CELLS), changed=changed)).age for _ in range(5)]  # type: ignore[union-attr]
    embedding.close()
    assert ages == [0, 1, 2, 3, 0]
    assert len(encoder.encoded) == 3


def test_of_windows_only_those_with_lost_cells_are_encoded() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder, dense="windows", window=64, stale=0.0)
    first = embedding.update(view(frame(CELLS), first=True))
    assert first is not None
    count = len(encoder.encoded)
    assert set(encoder.encoded) == {(64, 64)}
    np.testing.assert_allclose(first.coefficients[0], CELLS, atol=0.51)
    valid = np.ones((8, 12), np.bool_)
    valid[0, 0] = False
    changed = CELLS.copy()
    changed[0, 0] = 250
    now = embedding.update(view(frame(changed), valid=valid))
    embedding.close()
    assert now is not None
    assert len(encoder.encoded) == count + 1
    np.testing.assert_allclose(now.coefficients[0], changed, atol=0.51)
    assert now.age == 1  # of the other windows


def test_a_live_stream_goes_on_and_gets_the_result_carried_to_the_present() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder)
    encoder.gate.clear()
    assert embedding.update(view(frame(CELLS, live=True), first=True)) is None
    assert not embedding.settled
    assert embedding.update(view(frame(CELLS, live=True), flow=to_the_right(1))) is None
    encoder.gate.set()
    now = None
    steps = 1
    limit = threading.Event()
    while now is None:
        limit.wait(0.01)
        now = embedding.update(view(frame(CELLS, live=True), flow=to_the_right(1)))
        steps += 1
        assert steps < LIMIT / 0.01
    embedding.close()
    assert embedding.settled
    assert now.age == steps
    np.testing.assert_allclose(now.coefficients[0], shifted(np.float32(CELLS), min(steps, 12)), atol=0.51)
    assert len(encoder.encoded) == 1


def test_after_a_cut_nothing_of_the_earlier_scene_arrives() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder, wait=False)
    encoder.gate.clear()
    embedding.update(view(frame(CELLS), first=True))
    embedding.update(view(frame(CELLS + 40), first=True))
    encoder.gate.set()
    now = None
    for _ in range(1000):
        now = embedding.update(view(frame(CELLS + 40)))
        if now is not None:
            break
        threading.Event().wait(0.01)
    embedding.close()
    assert now is not None
    np.testing.assert_allclose(now.coefficients[0], CELLS + 40, atol=0.51)


def test_a_fault_of_the_encoder_is_raised_where_the_result_is_taken() -> None:
    encoder = GreyEncoder()
    encoder.fault = OSError("the model is broken")
    embedding = embedder(encoder)
    with pytest.raises(OSError, match="the model is broken"):
        embedding.update(view(frame(CELLS), first=True))
    embedding.close()


def test_the_thread_is_its_own_and_ends_with_close() -> None:
    encoder = GreyEncoder()
    embedding = embedder(encoder)
    embedding.update(view(frame(CELLS), first=True))
    (name,) = encoder.threads
    assert name.startswith("foveate-encoder")
    assert any(thread.name == name for thread in threading.enumerate())
    embedding.close()
    embedding.close()
    assert all(thread.name != name for thread in threading.enumerate())


@given(st.integers(1, 900), st.integers(1, 900), st.integers(2, 20))
def test_each_cell_of_the_picture_is_served_once_by_a_region_that_holds_it(width: int, height: int, side: int) -> None:
    geometry = Geometry(width, height)
    for found in (whole_picture(geometry), windows(geometry, side * 16)):
        served = np.zeros(geometry.grid, np.int32)
        for region in found:
            rows, columns = region.serves
            assert region.top <= rows.start < rows.stop <= region.bottom
            assert region.left <= columns.start < columns.stop <= region.right
            served[region.serves] += 1
        np.testing.assert_array_equal(served, geometry.inside)


def test_a_window_sees_at_least_a_quarter_of_itself_around_what_it_serves() -> None:
    geometry = Geometry(1280, 720)
    for region in windows(geometry, 256):
        for axis, (start, stop) in enumerate(((region.top, region.bottom), (region.left, region.right))):
            served, end = region.serves[axis], (45, 80)[axis]
            assert served.start == 0 or served.start - start >= 4
            assert served.stop == end or stop - served.stop >= 4


def test_a_track_remembers_what_was_lost_where_it_goes() -> None:
    track = FlowTrack((8, 12))
    valid = np.ones((8, 12), np.bool_)
    valid[2, 3] = False
    track.follow(None, valid)
    track.follow(to_the_right(2), np.ones((8, 12), np.bool_))
    expected = np.zeros((8, 12), np.bool_)
    expected[2, 5] = True
    np.testing.assert_array_equal(track.lost, expected)
