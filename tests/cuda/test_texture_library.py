"""The texture library: boxes and checks without a card, levels and samples on one against NumPy."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from foveate.cuda.driver import dlpack
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.tensor_views import view_of
from foveate.cuda.textures import Box, Texture, VideoTexture, texture
from foveate.cuda.textures.boxes import boxes_of, one_level_up
from foveate.cuda.textures.mipmap_reference import halving, next_level
from foveate.cuda.textures.sample_reference import trilinear
from foveate.cuda.textures.video import changed_boxes, packed

HALF = 2**-11
"""Half floats in [0.5, 1] lie 2**-11 apart; sums in another order may be rounded to the next one."""
FILTER = 8e-3
"""The hardware's weights have 8 bits in each of three directions: 3/512 of the range, and a half float's rounding."""


def inside(box: Box, shape: tuple[int, int]) -> NDArray[np.bool_]:
    mask = np.zeros(shape, np.bool_)
    mask[box.top : box.top + box.rows, box.left : box.left + box.columns] = True
    return mask


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 13), st.integers(1, 13), st.data())
def test_what_depends_on_a_box_is_rebuilt(rows: int, columns: int, data: st.DataObject) -> None:
    top, left = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    box = Box(top, left, data.draw(st.integers(1, rows - top)), data.draw(st.integers(1, columns - left)))
    touched = (halving(rows) @ inside(box, (rows, columns)).astype(float) @ halving(columns).T) > 0
    found = one_level_up(box, (rows, columns))
    assert np.array_equal(inside(found, touched.shape), touched)


def test_the_reference_keeps_the_mean_and_has_known_values() -> None:
    texels = np.arange(15, dtype=np.float16).reshape(5, 3, 1)
    level = next_level(texels)
    assert level.shape == (2, 1, 1)
    assert level.mean() == pytest.approx(texels.mean())
    assert level[0, 0, 0] == pytest.approx((2 * 1 + 2 * 4 + 1 * 7) / 5, abs=4e-3)  # means of rows: 1, 4, 7, 10, 13
    assert next_level(np.float16([[[1], [2]], [[3], [6]]])).tolist() == [[[3]]]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 64))
def test_boxes_cover_the_marked_tiles_alone(seed: int, most: int) -> None:
    rng = np.random.default_rng(seed)
    marked = rng.random((6, 9)) < rng.random()
    shape = 6 * 4 - 1, 9 * 4 - 3
    boxes = boxes_of(marked, 4, shape, most)
    assert len(boxes) <= most
    covered = sum((inside(box, shape).astype(int) for box in boxes), np.zeros(shape, int))
    wanted = marked.repeat(4, 0).repeat(4, 1)[: shape[0], : shape[1]]
    assert (covered <= 1).all()
    assert (covered[wanted] == 1).all()
    if len(boxes) > 1:
        assert (covered == wanted).all()


def test_only_tiles_that_differ_are_packed() -> None:
    before = np.zeros((70, 101, 3), np.uint8)
    now = before.copy()
    now[69, 100, 1] = 7
    now[10, 40:70, 2] = 9
    boxes = changed_boxes(before, now, 64)
    assert boxes == [Box(0, 32, 32, 64), Box(64, 96, 6, 5)]
    into = np.empty(now.size, np.uint8)
    used, pieces = packed(now, boxes, into)
    assert used == sum(box.rows * box.columns for box in boxes) * 3
    for box, first, row in pieces:
        texels = now[box.top : box.top + box.rows, box.left : box.left + box.columns]
        assert row == box.columns * 3
        assert np.array_equal(into[first : first + texels.size], texels.reshape(-1))
    assert changed_boxes(now, now, 64) == []


class Recorder:
    """Stands in for the kernels of a texture: notes what is enqueued."""

    def __init__(self, *_: Any) -> None:
        self.enqueued: list[Any] = []
        self.most_boxes = 64

    def enqueue(self, *arguments: Any) -> None:
        self.enqueued.append(arguments)


class NoArray:
    """Stands in for TextureArray."""

    nbytes = 0

    def __init__(
        self, device: Any, name: str, shape: tuple[int, int], layers: int, levels: int, components: int
    ) -> None:
        self.shape, self.layers, self.levels, self.components = shape, layers, levels, components

    def level_shape(self, level: int) -> tuple[int, int]:
        return max(1, self.shape[0] >> level), max(1, self.shape[1] >> level)

    def free(self) -> None: ...


@pytest.fixture
def without_card(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes textures that do nothing."""
    monkeypatch.setattr(texture, "TextureArray", NoArray)
    for name in ("Writer", "Mipmap", "Sampler"):
        monkeypatch.setattr(texture, name, Recorder)
    monkeypatch.setattr(texture, "SurfacePool", lambda *_: SimpleNamespace(close=lambda: None))
    stream = SimpleNamespace(handle=0, synchronize=lambda: None)
    return lambda *args, **options: Texture(SimpleNamespace(index=0), stream, *args, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((0, 5), {}, "shape must be rows and columns from 1 to 32768"),
        ((40_000, 5), {}, "shape must be rows and columns from 1 to 32768"),
        ((5, 5), {"layers": 0}, "layers must be from 1 to 2048, got 0"),
        ((5, 5), {"components": 3}, r"components must be one of \(1, 2, 4\), got 3"),
        ((5, 8), {"levels": 5}, "levels must be from 1 to 4 for 5 rows and 8 columns, got 5"),
        ((5, 8), {"levels": 0}, "levels must be from 1 to 4"),
    ],
)
def test_numbers_that_no_texture_has(shape: Any, options: Any, message: str, without_card: Any) -> None:
    with pytest.raises(ValueError, match=message):
        without_card(shape, **options)


@pytest.mark.parametrize(
    ("values", "place", "message"),
    [
        (np.zeros((4, 4, 2), np.uint8), {}, "C 4 or 3, got uint8"),
        (np.zeros((4, 4), np.uint8), {}, r"got uint8\[4, 4\]"),
        (np.zeros((4, 4, 4)), {}, "values must be uint8, float16, float32"),
        (np.zeros((4, 4, 4), np.float32), {"top": 7}, "a box must lie within 10 rows and 20 columns"),
        (np.zeros((4, 4, 4), np.float32), {"left": -1}, "a box must lie within"),
        (np.zeros((0, 4, 4), np.float32), {}, "hold a texel"),
        (np.zeros((4, 4, 4), np.float32), {"layer": 3}, "the texture has 3 layers, got 1 of them from layer 3 on"),
        (np.zeros((2, 4, 4, 3), np.float16), {"layer": 2}, "got 2 of them from layer 2 on"),
    ],
)
def test_updates_that_do_not_fit(values: Any, place: Any, message: str, without_card: Any) -> None:
    made = without_card((10, 20), layers=3)
    with pytest.raises(ValueError, match=message):
        made.update(values, **place)
    assert made.writer.enqueued == made.mipmap.enqueued == []


@pytest.mark.parametrize(
    "points",
    [np.zeros((5, 2), np.float32), np.zeros((5, 3)), np.zeros((2, 5, 3), np.float32), np.zeros((0, 3), np.float32)],
)
def test_points_that_are_none(points: Any, without_card: Any) -> None:
    with pytest.raises(ValueError, match=r"points must be float32\[K, 3\] or float32\[3, K, 3\], K at least 1, got "):
        without_card((10, 20), layers=3).sample(points)


def test_patches_that_are_none(without_card: Any) -> None:
    made, points = without_card((10, 20), layers=3), np.zeros((5, 3), np.float32)
    for side in (0, 257):
        with pytest.raises(ValueError, match=f"side must be from 1 to 256, got {side}"):
            made.patches(points, side)
    with pytest.raises(ValueError, match=r"points must be float32\[K, 3\]"):
        made.patches(points[:, :2])
    many = np.broadcast_to(points[:1], (10_000, 3))
    with pytest.raises(ValueError, match="10000 points have 7864320000 values, more than 2147483647"):
        made.patches(many, 256)


def test_levels_and_frames_that_are_none(without_card: Any) -> None:
    made = without_card((10, 20), layers=3)
    assert made.levels == 5
    assert made.level_shape(4) == (1, 1)
    for level in (-1, 5):
        with pytest.raises(ValueError, match="level must be from 0 to 4"):
            made.level(level)
    with pytest.raises(ValueError, match="layer must be from 0 to 2, got 3"):
        VideoTexture(made, 3)
    with pytest.raises(ValueError, match=r"a frame must be \[10, 20, C\], got \[10, 21, 3\]"):
        VideoTexture(made).update(np.zeros((10, 21, 3), np.uint8))


class Lender:
    """An array in host memory that says it is on a card, and notes which stream it is asked for."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.streams: list[int] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int) -> Any:
        self.streams.append(stream)
        return self._array.__dlpack__()


def test_arrays_of_other_libraries_are_read_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "CUDA", dlpack.CPU)
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    lender = Lender(array.transpose(1, 2, 0)[1:])
    view = view_of(lender, 0, SimpleNamespace(handle=77))
    assert lender.streams == [77]
    assert (view.shape, view.strides, view.dtype) == ((2, 4, 2), (4, 1, 12), np.float32)
    assert view.pointer == array.ctypes.data + 16
    assert not view.contiguous
    assert view_of(Lender(array), 0, SimpleNamespace(handle=0)).contiguous
    assert view_of(Lender(array[:, :1, :2][:1]), 0, SimpleNamespace(handle=0)).contiguous  # two values in a row
    assert not view_of(Lender(array[:, :1, :2]), 0, SimpleNamespace(handle=0)).contiguous
    with pytest.raises(ValueError, match="must be uint8, float16 or float32, got DLPack type 2 of 64 bits"):
        view_of(Lender(np.zeros(3)), 0, SimpleNamespace(handle=0))
    with pytest.raises(ValueError, match="must be on GPU 1 or on the host, got DLPack device"):
        view_of(Lender(array), 1, SimpleNamespace(handle=0))


def pictures(layers: int, rows: int, columns: int, components: int, seed: int = 3) -> NDArray[np.float32]:
    """Noise in [0, 1) that half floats hold exactly."""
    rng = np.random.default_rng(seed)
    return rng.random((layers, rows, columns, components)).astype(np.float16).astype(np.float32)


def levels_of(picture: NDArray[Any], count: int) -> list[NDArray[np.float16]]:
    levels = [picture.astype(np.float16)]
    while len(levels) < count:
        levels.append(next_level(levels[-1]))
    return levels


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(37, 53), (64, 32), (1, 19), (33, 1), (270, 481)])
@pytest.mark.parametrize("components", [1, 2, 4])
def test_all_levels(shape: tuple[int, int], components: int, device: Device, stream: Stream) -> None:
    given = pictures(3, *shape, components)
    with Texture(device, stream, shape, layers=3, components=components) as made:
        made.update(given)
        found = [made.level(level).host() for level in range(made.levels)]
    for layer in range(3):
        for level, wanted in enumerate(levels_of(given[layer], len(found))):
            wrong = np.abs(found[level][layer].astype(np.float32) - wanted.astype(np.float32)).max()
            assert wrong <= HALF * max(1, level), (layer, level)  # rounding is handed on from level to level
    assert found[-1].shape == (3, 1, 1, components)


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [np.uint8, np.float16, np.float32])
def test_types_and_the_fourth_component(kind: Any, device: Device, stream: Stream) -> None:
    scale = 255 if kind == np.uint8 else 1
    given = (
        np.rint(pictures(1, 20, 30, 3)[0] * scale).astype(kind) if scale > 1 else pictures(1, 20, 30, 3)[0].astype(kind)
    )
    with Texture(device, stream, (20, 30), levels=2) as made:
        made.update(given)
        found = made.level(0).host()[0]
    assert np.array_equal(found[..., :3], (given.astype(np.float32) / np.float32(scale)).astype(np.float16))
    assert (found[..., 3] == 1).all()


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(61, 83), (64, 96)])
def test_partial_updates_equal_a_whole_one(shape: tuple[int, int], device: Device, stream: Stream) -> None:
    rng = np.random.default_rng(8)
    picture = pictures(4, *shape, 4)
    with Texture(device, stream, shape, layers=4) as parts, Texture(device, stream, shape, layers=4) as whole:
        parts.update(picture)
        for _ in range(12):
            rows, columns = (int(rng.integers(1, size + 1)) for size in shape)
            top, left = int(rng.integers(shape[0] - rows + 1)), int(rng.integers(shape[1] - columns + 1))
            layer, count = int(rng.integers(3)), int(rng.integers(1, 3))
            new = rng.random((count, rows, columns, 4), np.float32)
            picture[layer : layer + count, top : top + rows, left : left + columns] = new
            parts.update(new, layer=layer, top=top, left=left)
        whole.update(picture)
        for level in range(parts.levels):
            assert np.array_equal(parts.level(level).host(), whole.level(level).host()), level
        parts.rebuild()
        assert np.array_equal(parts.level(3).host(), whole.level(3).host())


@pytest.mark.gpu
@pytest.mark.parametrize("components", [1, 2, 4])
def test_samples(components: int, device: Device, stream: Stream) -> None:
    rng = np.random.default_rng(4)
    with Texture(device, stream, (45, 70), layers=2, components=components) as made:
        made.update(pictures(2, 45, 70, components))
        levels = [made.level(level).host() for level in range(made.levels)]
        points = (rng.random((2, 100, 3)) * [1.2, 1.2, made.levels] - [0.1, 0.1, 0.5]).astype(np.float32)
        own, shared = made.sample(points).host(), made.sample(points[0]).host()
    assert own.shape == shared.shape == (100, 2, components)
    for layer in range(2):
        texels = [level[layer] for level in levels]
        for found, at in ((own, points[layer]), (shared, points[0])):
            wanted = np.stack([trilinear(texels, *point) for point in at.tolist()])
            assert np.abs(found[:, layer] - wanted).max() <= FILTER


@pytest.mark.gpu
@pytest.mark.parametrize("side", [1, 2, 5, 16])
def test_patches_are_samples_around_their_points(side: int, device: Device, stream: Stream) -> None:
    """At fractional levels, beyond the picture's edges and its last level, each layer at its own points."""
    rng = np.random.default_rng(6)
    shape = 45, 70
    with Texture(device, stream, shape, layers=2) as made:
        made.update(pictures(2, *shape, 4))
        levels = [made.level(level).host() for level in range(made.levels)]
        points = (rng.random((2, 12, 3)) * [1.2, 1.2, made.levels + 1] - [0.1, 0.1, 1]).astype(np.float32)
        found, alone = made.patches(points, side).host(), made.sample(points).host()
    assert found.shape == (12, 2, side, side, 4)
    if side == 1:
        assert np.array_equal(found[:, :, 0, 0], alone)
    offsets = np.arange(side) - (side - 1) / 2
    for layer in range(2):
        texels = [level[layer] for level in levels]
        for point, (x, y, level) in enumerate(points[layer].tolist()):
            across, down = x + offsets * 2**level / shape[1], y + offsets * 2**level / shape[0]
            wanted = [[trilinear(texels, column, row, level) for column in across] for row in down]
            assert np.abs(found[point, layer] - np.array(wanted)).max() <= FILTER


@pytest.mark.gpu
def test_patches_are_those_of_the_differentiable_samples(device: Device, stream: Stream) -> None:
    """pipeline.learned's, in float32 on the CPU; sides of whole tiles, so that all levels halve exactly."""
    torch = pytest.importorskip("torch")
    from foveate.pipeline.learned import picture_levels, sample_patches

    rng = np.random.default_rng(7)
    picture = rng.random((64, 96, 4), np.float32)
    places = (rng.random((40, 3)) * [96, 64, 4]).astype(np.float32)
    places[:8, 2] = np.arange(8) % 5  # of tokens, too
    with Texture(device, stream, (64, 96), levels=5) as made:
        made.update(picture)
        found = made.patches(places / np.float32([96, 64, 1])).host()[:, 0]
    x, y, lod = (torch.from_numpy(places[:, axis].copy())[None] for axis in range(3))
    wanted = sample_patches(picture_levels(torch.from_numpy(picture).permute(2, 0, 1)[None]), x, y, lod)[0]
    # Texels are half floats, rounded again at each of four levels: 5 * 2**-12 beside the filter's weights.
    assert np.abs(found - wanted.permute(0, 2, 3, 1).numpy()).max() <= FILTER + 5 * 2**-12


@pytest.mark.gpu
def test_a_video_is_written_where_it_changed(device: Device, stream: Stream) -> None:
    rng = np.random.default_rng(5)
    frame = rng.integers(0, 256, (130, 200, 3), np.uint8)
    with (
        Texture(device, stream, (130, 200), layers=2) as made,
        Texture(device, stream, (130, 200), layers=2) as whole,
        VideoTexture(made, 1) as shown,
    ):
        made.update(np.zeros((2, 130, 200, 4), np.uint8))
        assert shown.update(frame) == [Box(0, 0, 130, 200)]
        for step in range(5):
            frame = frame.copy()
            frame[5 + 20 * step : 25 + 20 * step, 10:30] = rng.integers(0, 256, (20, 20, 3), np.uint8)
            frame[129, 199 - step] ^= 255
            boxes = shown.update(frame)
            assert 0 < sum(box.rows * box.columns for box in boxes) < 130 * 200 / 2
        assert shown.update(frame) == []
        whole.update(np.zeros((2, 130, 200, 4), np.uint8))
        whole.update(frame, layer=1)
        for level in range(made.levels):
            assert np.array_equal(made.level(level).host(), whole.level(level).host()), level


@pytest.mark.gpu
def test_dlpack_in_and_out(device: Device, stream: Stream) -> None:
    picture = pictures(2, 33, 47, 4)
    with Texture(device, stream, (33, 47), layers=2) as made, Texture(device, stream, (33, 47), layers=2) as copy:
        made.update(picture)
        copy.update(made.level(0))
        for level in range(made.levels):
            assert np.array_equal(made.level(level).host(), copy.level(level).host())
        with pytest.raises(ValueError, match="points must be float32"):
            made.sample(made.level(0))
        samples = made.sample(np.zeros((3, 3), np.float32))
    assert samples.host().shape == (3, 2, 4)  # outlives its texture


@pytest.mark.gpu
def test_torch_in_and_out(device: Device, stream: Stream) -> None:
    torch = pytest.importorskip("torch")
    planes = torch.rand(2, 3, 31, 45, device="cuda")
    with Texture(device, stream, (31, 45), layers=2) as made:
        made.update(planes.permute(0, 2, 3, 1))  # a view
        found = torch.from_dlpack(made.level(0))
        assert torch.equal(found[..., :3], planes.permute(0, 2, 3, 1).half())
        points = torch.tensor([[0.5 / 45, 0.5 / 31, 0.0], [0.5, 0.5, made.levels - 1.0]], device="cuda")
        samples = torch.from_dlpack(made.sample(points))
        assert torch.allclose(samples[0], found[:, 0, 0].float(), atol=FILTER)
        last = torch.from_dlpack(made.level(made.levels - 1))[:, 0, 0].float()
        assert torch.allclose(samples[1], last, atol=FILTER)
        assert torch.allclose(last[:, :3], planes.mean((2, 3)), atol=2e-3)
        with pytest.raises(ValueError, match="points on the card must lie without gaps"):
            made.sample(points.t().contiguous().t())
