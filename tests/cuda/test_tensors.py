"""What is handed out on the device: the promises of DLPack that need no GPU to be seen."""

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pytest

from foveate.cuda.driver import tensors
from foveate.cuda.driver.device import gpu_problem
from foveate.cuda.driver.tensors import DeviceTensor
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.stream import open_stream

_CPU = 1  # kDLCPU


class HostSurface:
    """A surface in host memory, which NumPy can look at as a consumer."""

    class _Pixels:
        def __init__(self, values: np.ndarray[Any, Any]) -> None:
            self.pointer = values.ctypes.data

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values, self.pixels = values, self._Pixels(values)
        self.waited: list[int] = []
        self.released: list[int] = []

    def await_before(self, stream: int) -> None:
        self.waited.append(stream)

    def release_behind(self, stream: int) -> None:
        self.released.append(stream)

    def download(self) -> np.ndarray[Any, Any]:
        return self.values.copy()


@pytest.fixture
def surface(monkeypatch: pytest.MonkeyPatch) -> HostSurface:
    monkeypatch.setattr(tensors, "CUDA", _CPU)
    return HostSurface(np.arange(64, dtype=np.uint8))


class Consumer:
    """Hands NumPy a capsule made for a stream."""

    def __init__(self, tensor: DeviceTensor, stream: int | None) -> None:
        self._tensor, self._stream = tensor, stream

    def __dlpack__(self, **_: Any) -> Any:
        return self._tensor.__dlpack__(stream=self._stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._tensor.__dlpack_device__()


@pytest.mark.parametrize(("stream", "handles"), [(None, [1]), (1, [1]), (77, [77]), (-1, [])])
def test_a_consumer_sees_the_values_and_its_stream_is_waited_for(
    stream: int | None, handles: list[int], surface: HostSurface
) -> None:
    tensor = DeviceTensor(surface, (3, 4, 5), 0)  # type: ignore[arg-type]
    seen = np.from_dlpack(Consumer(tensor, stream))
    assert seen.ctypes.data == surface.values.ctypes.data
    assert np.array_equal(seen, np.arange(60).reshape(3, 4, 5))
    assert surface.waited == handles
    assert surface.released == []
    del tensor
    view = seen[1:]
    del seen
    gc.collect()
    assert surface.released == []  # a view holds it
    del view
    gc.collect()
    assert surface.released == handles


def test_a_capsule_that_nobody_takes_lets_go(surface: HostSurface) -> None:
    before = sys.getrefcount(surface)
    capsule = DeviceTensor(surface, (2, 8), 0).__dlpack__(stream=5)  # type: ignore[arg-type]
    assert sys.getrefcount(surface) > before
    is_valid = ctypes.pythonapi.PyCapsule_IsValid
    is_valid.argtypes = ctypes.py_object, ctypes.c_char_p
    assert is_valid(capsule, b"dltensor")
    del capsule
    gc.collect()
    assert sys.getrefcount(surface) == before
    assert surface.released == [5]


def test_no_copy_and_no_other_device(surface: HostSurface) -> None:
    tensor = DeviceTensor(surface, (2, 8), 0)  # type: ignore[arg-type]
    assert tensor.__dlpack__(stream=-1, max_version=(1, 0), dl_device=tensor.__dlpack_device__(), copy=False)
    for options in ({"copy": True}, {"dl_device": (2, 7)}):
        with pytest.raises(ValueError, match="exported without a copy, on GPU 0"):
            tensor.__dlpack__(**options)
    assert np.array_equal(tensor.host(), np.arange(16).reshape(2, 8))


def test_patches_on_the_device_need_one(samples: Any) -> None:
    with pytest.raises(SettingsError, match="device_patches needs a GPU"):
        open_stream(str(samples / "tree.mp4"), engine="cpu", device_patches=True)
    if gpu_problem():
        with pytest.raises(EngineError, match="device_patches needs engine 'cuda', which cannot run here"):
            open_stream(str(samples / "tree.mp4"), device_patches=True)
