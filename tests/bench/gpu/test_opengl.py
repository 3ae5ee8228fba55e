"""Which OpenGL context is taken, with a stand-in for moderngl."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from foveate.bench.gpu.opengl import opengl_context


def use(vendors: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Lets moderngl find devices of these vendors; returns those that were released."""
    released: list[str] = []

    def create(device_index: int, **_: Any) -> Any:
        if device_index >= len(vendors):
            raise Exception(f"no device {device_index}\nmore")
        vendor = vendors[device_index]
        info = {"GL_VENDOR": vendor, "GL_RENDERER": f"a renderer of {vendor}"}
        return SimpleNamespace(info=info, release=lambda: released.append(vendor))

    monkeypatch.setitem(sys.modules, "moderngl", SimpleNamespace(create_context=create))
    return released


def test_the_cards_context_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    released = use(["Mesa", "NVIDIA Corporation"], monkeypatch)
    context, why = opengl_context()
    assert context.info["GL_VENDOR"] == "NVIDIA Corporation"
    assert (why, released) == ("", ["Mesa"])


def test_why_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    use(["Mesa"], monkeypatch)
    assert opengl_context() == (None, "EGL renders by a renderer of Mesa")
    use([], monkeypatch)
    assert opengl_context() == (None, "no device 0")
    monkeypatch.setitem(sys.modules, "moderngl", None)
    assert opengl_context() == (None, "moderngl cannot be imported")
