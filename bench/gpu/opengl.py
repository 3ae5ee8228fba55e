"""What it costs to map an OpenGL texture for CUDA and to unmap it, which a texture of CUDA's own does not need:

python -m foveate.bench.gpu.opengl --out gpu_opengl.json

Needs moderngl, and EGL by NVIDIA's driver: without a display, OpenGL is reached through it. Where that is missing, the
record says so. ``idle``: nothing is drawn between two mappings; ``drawn``: OpenGL clears the texture before each, and
what is told is the time beside clearing alone. All by the host's clock, until both sides are done.
"""

import ctypes
import time
from collections.abc import Callable
from typing import Any, Final

from foveate.bench.entry import Out, run_module
from foveate.bench.gpu.launches import percentiles
from foveate.bench.gpu.scene import HEIGHT, WIDTH
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.cuda.driver.device import Device, Stream, checked
from foveate.pipeline.errors import first_line

_ROUNDS: Final = 200
_WARM: Final = 20
_MOST_DEVICES: Final = 8  # of EGL's, of which some may render on the CPU
_OPENGL: Final = ("libGL.so.1", "libOpenGL.so.0")  # the second alone is there where GLX is not
_EGL: Final = "libEGL.so.1"
_TEXTURE_2D: Final = 0x0DE1  # GL_TEXTURE_2D
_WRITABLE: Final = 4  # CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST


def gpu_opengl(out: Out = None) -> None:
    """Look for EGL on this machine, and measure mapping and unmapping a picture of 1920x1080."""
    record = new_record("gpu_opengl", out, width=WIDTH, height=HEIGHT)
    with Device() as device:
        record["card"] = device.name
        context, why = opengl_context()
        if context is None:
            record |= {"egl": False, "why": why}
            say(f"no OpenGL by the card: {why}")
        else:
            record |= {"egl": True, "opengl": context.info["GL_VERSION"], **_measured(context, device.stream())}
            for way in ("idle", "drawn"):
                say(f"{way}: {record[way]['p50_us']:.1f} us to map and unmap")
    hand_out(record, out)


def opengl_context() -> tuple[Any, str]:
    """An OpenGL context on an NVIDIA card, or None and why there is none."""
    try:
        import moderngl
    except ImportError:
        return None, "moderngl cannot be imported"
    libraries = {"libgl": next(filter(_loads, _OPENGL), _OPENGL[0]), "libegl": _EGL}
    why = "EGL has no device"
    for index in range(_MOST_DEVICES):
        try:
            context = moderngl.create_context(standalone=True, backend="egl", device_index=index, **libraries)
        except Exception as error:  # noqa: BLE001 (moderngl raises bare Exceptions)
            return None, why if index else first_line(error)
        if "NVIDIA" in context.info["GL_VENDOR"]:
            return context, ""
        why = f"EGL renders by {context.info['GL_RENDERER']}"
        context.release()
    return None, why


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _measured(context: Any, stream: Stream) -> dict[str, Any]:
    from cuda.bindings import driver

    texture = context.texture((WIDTH, HEIGHT), 4, dtype="f2")
    target = context.framebuffer([texture])
    resource = checked(driver.cuGraphicsGLRegisterImage(texture.glo, _TEXTURE_2D, _WRITABLE))

    def lend() -> None:
        checked(driver.cuGraphicsMapResources(1, resource, int(stream.handle)))
        checked(driver.cuGraphicsSubResourceGetMappedArray(resource, 0, 0))
        checked(driver.cuGraphicsUnmapResources(1, resource, int(stream.handle)))
        stream.synchronize()

    def draw() -> None:
        target.clear(0.5, 0.5, 0.5, 1.0)

    def draw_and_lend() -> None:
        draw()
        lend()

    try:
        alone = _times(draw, context)
        idle = _times(lend, context)
        both = _times(draw_and_lend, context)
    finally:
        checked(driver.cuGraphicsUnregisterResource(resource))
    extra = [whole - part for whole, part in zip(sorted(both), sorted(alone), strict=True)]
    return {"idle": percentiles(idle, "_us"), "drawn": percentiles(extra, "_us")}


def _times(step: Callable[[], None], context: Any) -> list[float]:
    """Microseconds of each round, until OpenGL is done."""
    times = []
    for _ in range(_WARM + _ROUNDS):
        context.finish()
        begin = time.perf_counter()
        step()
        context.finish()
        times.append(1e6 * (time.perf_counter() - begin))
    return times[_WARM:]


if __name__ == "__main__":
    run_module(gpu_opengl)
