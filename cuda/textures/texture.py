"""One or more pictures on the card, with mipmap levels: written in whole or in part, read anywhere at any scale."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import numpy as np
from numpy.typing import DTypeLike

from foveate.cuda.driver.calls import calls
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray
from foveate.cuda.driver.surfaces import Surface, SurfacePool
from foveate.cuda.driver.tensor_views import TensorView, is_on_host, row_major, view_of
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.cuda.driver.textures import TextureArray
from foveate.cuda.textures.boxes import Box, checked_box
from foveate.cuda.textures.mipmap import Mipmap
from foveate.cuda.textures.sample import Sampler
from foveate.cuda.textures.write import Piece, Writer
from foveate.pipeline.spec.tokens import PATCH

COMPONENTS: Final = (1, 2, 4)
"""Values of a texel; hardware has no texels of three."""
_LARGEST: Final = 32_768  # rows or columns, of layered textures
_MOST_LAYERS: Final = 2_048
_MOST_VALUES: Final = 2**31 - 1  # of one call
_WIDEST: Final = 256  # samples along a patch
_TAKEN: Final = ("uint8", "float16", "float32")


class Texture:
    """``layers`` pictures of half floats, [rows, columns, components] at level 0; each level has half as many of both.

    Values are what is written, or for uint8 a 255th of it. All work is enqueued on one stream. Arrays are passed in
    from NumPy, or from PyTorch, CuPy or JAX on the host or on the same GPU; what comes out is a DeviceTensor, for
    ``torch.from_dlpack`` and the like, and ``host()`` copies it to NumPy.
    """

    def __init__(
        self,
        device: Device,
        stream: Stream,
        shape: tuple[int, int],
        *,
        layers: int = 1,
        levels: int | None = None,
        components: int = 4,
    ) -> None:
        """``shape``: rows and columns. ``levels``: by default all, down to one texel. Texels are undefined at first.

        Raises ValueError for numbers that no texture can have, EngineError where the card is full.
        """
        _check_numbers(shape, layers, components)
        most = max(shape).bit_length()
        if levels is not None and not 1 <= levels <= most:
            raise ValueError(
                f"levels must be from 1 to {most} for {shape[0]} rows and {shape[1]} columns, got {levels}"
            )
        self.device, self.stream = device, stream
        self._array = TextureArray(device, "a texture", shape, layers, levels or most, components)
        self.shape, self.layers, self.levels, self.components = shape, layers, self._array.levels, components
        self.writer = Writer(device, self._array)
        self.mipmap = Mipmap(device, self._array)
        self._sampler = Sampler(device, self._array)
        self._pools = {
            name: SurfacePool(device, name) for name in ("copy of values", "table of samples", "level's copy")
        }

    @property
    def nbytes(self) -> int:
        """Bytes of its texels in device memory."""
        return self._array.nbytes

    def level_shape(self, level: int) -> tuple[int, int]:
        """Rows and columns of ``level``."""
        return self._array.level_shape(self._checked_level(level))

    def update(self, values: Any, *, layer: int = 0, top: int = 0, left: int = 0) -> None:
        """Write ``values`` into level 0 from row ``top`` and column ``left`` on, and bring its levels up to date there.

        ``values``: uint8, float16 or float32 [rows, columns, C] for one layer, or [L, rows, columns, C] for ``layer``
        and those behind it. C is ``components``; with four, also 3: the fourth becomes 1. Strides are as they like,
        so that ``tensor.permute(0, 2, 3, 1)`` of planes is taken without a copy. Returns once the values were read.
        Raises ValueError for other shapes and types, and for what does not lie within the texture.
        """
        check_values(values, self.components)
        stacked = len(values.shape) == 4
        layers, rows, columns, _ = values.shape if stacked else (1, *values.shape)
        self._check_layers(layer, layers)
        box = checked_box(Box(top, left, rows, columns), self.shape)
        with self._lent(values) as view:
            if not stacked:
                view = _stacked(view)
            self.writer.enqueue(view, [Piece(box, 0, view.strides[1])], layer, self.stream)
            self.mipmap.enqueue([box], layer, layers, self.stream)

    def rebuild(self) -> None:
        """Make all levels from level 0. ``update`` has done it for what it wrote."""
        self.mipmap.enqueue([Box(0, 0, *self.shape)], 0, self.layers, self.stream)

    def sample(self, points: Any) -> DeviceTensor:
        """Trilinear samples float32[K, layers, components] at K points, by the hardware, whose weights have 8 bits.

        ``points``: float32[K, 3], the same for all layers, or float32[layers, K, 3], each layer its own: x and y in
        [0, 1] across the picture, and the level, which may lie between two. What lies outside is clamped. Raises
        ValueError for other shapes and types.
        """
        return self._sampled(points, 1, (self.layers, self.components))

    def patches(self, points: Any, side: int = PATCH) -> DeviceTensor:
        """Patches float32[K, layers, side, side, components] around K points, trilinear like those of ``sample``.

        Their samples lie 2**level texels of level 0 apart, so a patch covers as much as a token of that LOD. Where the
        picture's sides are multiples of 2**level, at a token's centre and LOD it is the token's pixels. Levels may lie
        between two. ``points`` as for ``sample``. Raises ValueError for other shapes and types, and a ``side`` not
        from 1 to 256.
        """
        if not 1 <= side <= _WIDEST:
            raise ValueError(f"side must be from 1 to {_WIDEST}, got {side}")
        return self._sampled(points, side, (self.layers, side, side, self.components))

    def _sampled(self, points: Any, side: int, each: tuple[int, ...]) -> DeviceTensor:
        """``each``: the shape of a point's values."""
        shape, dtype = tuple(points.shape), _dtype_name(points)
        own = len(shape) == 3 and shape[0] == self.layers
        if dtype != "float32" or shape[-1:] != (3,) or not (own or len(shape) == 2) or not shape[-2]:
            raise ValueError(
                f"points must be float32[K, 3] or float32[{self.layers}, K, 3], K at least 1, got {dtype}{list(shape)}"
            )
        count = shape[-2]
        if count * math.prod(each) > _MOST_VALUES:
            raise ValueError(f"{count} points have {count * math.prod(each)} values, more than {_MOST_VALUES}")
        surface = self._surface("table of samples", (count, math.prod(each)), np.float32)
        with self._lent(points) as view:
            if not view.contiguous:
                raise ValueError(f"points on the card must lie without gaps, got strides {list(view.strides)}")
            given = DeviceArray("points", shape, view.dtype, view.pointer)
            self._sampler.enqueue(given, surface.pixels, self.stream, side)
        calls().record(surface.ready, self.stream.handle)
        return DeviceTensor(surface, (count, *each), self.device.index, np.float32)

    def level(self, level: int) -> DeviceTensor:
        """A copy of one level, float16[layers, rows, columns, components]. Raises ValueError where there is none."""
        rows, columns = self.level_shape(level)
        surface = self._surface("level's copy", (self.layers * rows, columns * self.components), np.float16)
        self._array.copy_level(level, surface.pixels.pointer, self.stream)
        calls().record(surface.ready, self.stream.handle)
        return DeviceTensor(surface, (self.layers, rows, columns, self.components), self.device.index, np.float16)

    def free(self) -> None:
        """Release it, once all work on its stream is done. What it handed out stays valid."""
        self.stream.synchronize()
        self._array.free()
        for pool in self._pools.values():
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    def _surface(self, pool: str, shape: tuple[int, int], dtype: DTypeLike) -> Surface:
        surface = self._pools[pool].surface(shape, np.dtype(dtype))
        surface.await_on(self.stream)
        return surface

    @contextmanager
    def _lent(self, values: Any) -> Iterator[TensorView]:
        """``values`` on the device, until the work on them that is enqueued meanwhile is done."""
        if is_on_host(values):
            array = np.ascontiguousarray(values if isinstance(values, np.ndarray) else np.from_dlpack(values))
            room = 1 << (array.nbytes - 1).bit_length()  # so that arrays of similar sizes share memory
            surface = self._surface("copy of values", (1, room), np.uint8)
            pointer = surface.pixels.pointer
            DeviceArray("values", array.shape, array.dtype, pointer).upload(array, self.stream)
            yield TensorView(pointer, array.shape, row_major(array.shape), array.dtype, surface)
            calls().record(surface.ready, self.stream.handle)
            return
        yield view_of(values, self.device.index, self.stream)
        self.stream.synchronize()

    def _checked_level(self, level: int) -> int:
        if not 0 <= level < self.levels:
            raise ValueError(f"level must be from 0 to {self.levels - 1}, got {level}")
        return level

    def _check_layers(self, layer: int, layers: int) -> None:
        if layer < 0 or layers < 1 or layer + layers > self.layers:
            raise ValueError(f"the texture has {self.layers} layers, got {layers} of them from layer {layer} on")


def _check_numbers(shape: tuple[int, int], layers: int, components: int) -> None:
    if len(shape) != 2 or not all(1 <= size <= _LARGEST for size in shape):
        raise ValueError(f"shape must be rows and columns from 1 to {_LARGEST}, got {shape}")
    if not 1 <= layers <= _MOST_LAYERS:
        raise ValueError(f"layers must be from 1 to {_MOST_LAYERS}, got {layers}")
    if components not in COMPONENTS:
        raise ValueError(f"components must be one of {COMPONENTS}, got {components}")


def check_values(values: Any, components: int) -> None:
    """Raise ValueError for arrays that ``update`` does not take, whatever the texture's size."""
    shape, dtype = tuple(values.shape), _dtype_name(values)
    given = (components, 3) if components == 4 else (components,)
    if dtype not in _TAKEN or len(shape) not in (3, 4) or shape[-1] not in given:
        listed = " or ".join(str(number) for number in given)
        raise ValueError(
            f"values must be {', '.join(_TAKEN)} [rows, columns, C] or [layers, rows, columns, C] with C {listed}, "
            f"got {dtype}{list(shape)}"
        )


def _dtype_name(values: Any) -> str:
    """``float32`` for NumPy's and PyTorch's alike."""
    return str(values.dtype).rpartition(".")[2]


def _stacked(view: TensorView) -> TensorView:
    """One picture as a stack of one."""
    return TensorView(view.pointer, (1, *view.shape), (0, *view.strides), view.dtype, view.owner)
