"""The constants as headers, for C and for CUDA."""

import struct
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Literal

Language = Literal["c", "cuda"]

_FOLDER = Path(__file__).parent


def headers(language: Language) -> dict[str, str]:
    """Text by the name under which it is included, such as ``spec/geometry.h``: one for each module of constants."""
    names = sorted(path.stem for path in _FOLDER.glob("*.py") if path.stem not in ("__init__", "headers"))
    return {f"spec/{name}.h": header(import_module(f"{__package__}.{name}"), language) for name in names}


def header(module: ModuleType, language: Language) -> str:
    """The constants and enums of one module. Raises TypeError for what is neither."""
    lines = ["// Generated from pipeline/spec: change it there.", "#pragma once"]
    own = module.__annotations__  # not what is imported from other modules
    for name, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, IntEnum) and value.__module__ == module.__name__:
            members = ", ".join(f"{member.name} = {member.value}" for member in value)
            lines.append(f"enum {name} {{ {members} }};")
        elif name in own:
            lines.append(_constant(name, value, language))
    return "\n".join(lines) + "\n"


def _constant(name: str, value: object, language: Language) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be an int, a float or an IntEnum, got {value!r}")
    kind = "int" if isinstance(value, int) else "float"
    text = str(value) if isinstance(value, int) else as_float32(value)
    if language == "cuda":
        return f"constexpr {kind} {name} = {text};"
    return f"enum {{ {name} = {text} }};" if kind == "int" else f"static const float {name} = {text};"


def as_float32(value: float) -> str:
    """A literal of C that is exactly ``value`` rounded to float32. Raises OverflowError where that is infinite."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"{rounded.hex()}f"
