"""Kernels: compiled by NVRTC to cubins that are cached on disk, and launched with one parameter struct each."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.driver.device import Stream, checked
from foveate.cuda.driver.structs import ROOM, Layouts, constants, layouts, parameters
from foveate.pipeline.errors import EngineError
from foveate.pipeline.spec.headers import headers

_OPTIONS = ("--std=c++17", "--fmad=false", "-default-device")
"""No fused multiply-add: results then equal those of NumPy's float32, which rounds after each operation."""

_loading = threading.Lock()
_loaded: dict[tuple[Any, ...], tuple[Any, Layouts, Mapping[str, int]]] = {}
"""Modules, with their sources' structs and constants; the process keeps the context that they live in."""


def compile_cubin(path: Path, architecture: str) -> bytes:
    """The cubin of a ``.cu`` file for an architecture such as ``sm_90``, from the cache where it is there.

    Needs no GPU. Raises EngineError with the compiler's first complaint.
    """
    from cuda.bindings import nvrtc

    source = path.read_bytes()
    version = checked(nvrtc.nvrtcVersion())
    cached = _cache() / f"{path.stem}-{architecture}-{_digest(source, architecture, version)}.cubin"
    try:
        return cached.read_bytes()
    except OSError:
        cubin = _compile(path, source, architecture)
        _keep(cached, cubin)
        return cubin


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "foveate" / "kernels"


def _digest(source: bytes, architecture: str, version: tuple[int, int]) -> str:
    digest = hashlib.sha256(source)
    for header in sorted(ROOM.rglob("*.cuh")):
        digest.update(header.read_bytes())
    digest.update(repr(headers("cuda")).encode())
    digest.update(repr((_OPTIONS, architecture, version)).encode())
    return digest.hexdigest()[:20]


def _compile(path: Path, source: bytes, architecture: str) -> bytes:
    from cuda.bindings import nvrtc

    made = headers("cuda")
    names, texts = [name.encode() for name in made], [text.encode() for text in made.values()]
    program = checked(nvrtc.nvrtcCreateProgram(source, path.name.encode(), len(made), texts, names))
    try:
        folders = [f"--include-path={folder}" for folder in (ROOM, path.parent)]
        options = [f"--gpu-architecture={architecture}", *folders, *_OPTIONS]
        (code,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
        if int(code):
            log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise EngineError(f"{path.name} does not compile for {architecture}: {log.decode().strip(chr(0))}")
        cubin = bytearray(checked(nvrtc.nvrtcGetCUBINSize(program)))
        checked(nvrtc.nvrtcGetCUBIN(program, cubin))
        return bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _keep(place: Path, cubin: bytes) -> None:
    """Write atomically. A cache that cannot be written only makes the next start slower."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=place.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(cubin)
        Path(name).replace(place)
    except OSError:
        return


class Program:
    """The kernels of one ``.cu`` file, loaded into the current context once and shared."""

    def __init__(self, path: Path, architecture: str) -> None:
        """Compile and load, unless that is done already. Raises EngineError."""
        from cuda.bindings import driver

        self._driver = driver
        with _loading:
            key = path, path.stat().st_mtime_ns, architecture, int(checked(driver.cuCtxGetCurrent()))
            if key not in _loaded:
                module = checked(driver.cuModuleLoadData(compile_cubin(path, architecture)))
                _loaded[key] = module, layouts(path), constants(path)
            self._module, self._layouts, self.constants = _loaded[key]

    def kernel(self, name: str, threads: str = "THREADS") -> Kernel:
        """The kernel of this name, declared ``extern "C"`` with one struct as its only parameter.

        ``threads`` names the constant of the source that is the number of threads in its blocks.
        """
        function = checked(self._driver.cuModuleGetFunction(self._module, name.encode()))
        return Kernel(function, self.constants[threads])

    def parameters(self, struct: str, /, **values: Any) -> NDArray[np.void]:
        """A ``struct`` that the source declares, with a value for each of its fields; see structs.parameters."""
        return parameters(self._layouts[struct], **values)


class Kernel:
    """A kernel that takes one struct by value."""

    def __init__(self, function: Any, threads: int) -> None:
        from cuda.bindings import driver

        self._function = function
        self.threads = threads
        """Threads of a block, unless a launch says fewer."""
        width = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH
        self.cluster = int(checked(driver.cuFuncGetAttribute(width, function))) or 1
        """Blocks of a thread block cluster, where the kernel declares one; else 1. The grid is a multiple of it."""
        self._launch = driver.cuLaunchKernel

    def launch(
        self, stream: Stream, grid: int | tuple[int, ...], parameters: NDArray[np.void], threads: int | None = None
    ) -> None:
        """Enqueue on ``stream``: ``grid`` blocks of ``threads``; ``parameters`` as Program.parameters makes them."""
        pointers = np.array([parameters.ctypes.data], np.uint64)
        block = threads or self.threads
        checked(
            self._launch(self._function, *_three(grid), block, 1, 1, 0, int(stream.handle), pointers.ctypes.data, 0)
        )


def _three(size: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Launch dimensions, filled up with ones."""
    sizes = (size,) if isinstance(size, int) else size
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
