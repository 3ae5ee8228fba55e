"""The structs that Python hands to the C kernels have the members that the C sources declare: a compiler says so."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from foveate.pipeline.native import background, library
from foveate.pipeline.spec.headers import headers

FOLDER = Path(library.__file__).parent
KINDS = {ctypes.c_int32: "int32_t", ctypes.c_int64: "int64_t", ctypes.c_float: "float", ctypes.c_double: "double"}
Check = Callable[[type[ctypes.Structure]], str]


def structures() -> Iterator[type[ctypes.Structure]]:
    for path in sorted(FOLDER.glob("*.py")):
        module = import_module(f"foveate.pipeline.native.{path.stem}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, ctypes.Structure) and value.__module__ == module.__name__:
                yield value


def assertions(structure: type[ctypes.Structure]) -> Iterator[str]:
    """What must hold of the struct in C: the size, and the place, size and kind of each member."""
    name = structure.__name__.removeprefix("_")
    yield f"sizeof({name}) == {ctypes.sizeof(structure)}"
    for member, kind, *_ in structure._fields_:
        place = getattr(structure, member)
        yield f"offsetof({name}, {member}) == {place.offset}"
        yield f"sizeof((({name} *)0)->{member}) == {place.size}"
        element = KINDS.get(getattr(kind, "_type_", None), KINDS.get(kind))  # an array's, or a plain member's
        if element is not None:
            array = "[0]" if hasattr(kind, "_length_") else ""
            yield f"_Generic((({name} *)0)->{member}{array}, {element}: 1, default: 0)"


@pytest.fixture
def wrong(tmp_path: Path) -> Check:
    """Which assertion fails in the source of the struct's name, or in native.h; empty where none does."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    for name, text in headers("c").items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    def compiled(structure: type[ctypes.Structure]) -> str:
        own = FOLDER / f"{structure.__module__.rpartition('.')[2]}.c"
        lines = [f'#include "{own if own.exists() else FOLDER / "native.h"}"']
        lines += [f'_Static_assert({fact}, "Python says otherwise");' for fact in assertions(structure)]
        (tmp_path / "told.c").write_text("\n".join(lines) + "\n")
        command = [compiler, "-std=c11", "-fsyntax-only", f"-I{tmp_path}", f"-I{FOLDER}", str(tmp_path / "told.c")]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.stderr

    return compiled


def test_all_structs_are_found() -> None:
    names = {structure.__name__.removeprefix("_") for structure in structures()}
    assert names == {
        *("Attributes", "Background", "Channels", "Filling", "LeafErrors"),
        *("Motion", "Plane", "Pyramid", "Quadtree", "Task"),
    }


@pytest.mark.parametrize("structure", list(structures()), ids=lambda structure: structure.__name__)
def test_members_are_those_of_c(structure: type[ctypes.Structure], wrong: Check) -> None:
    assert wrong(structure) == ""


FIELDS = list(background._Background._fields_)
PLANTED = {
    "swapped": ([*FIELDS[:-2], FIELDS[-1], FIELDS[-2]], "offsetof(Background, step)"),
    "of another kind": ([*FIELDS[:-1], ("step", ctypes.c_float)], "float: 1"),
    "one too many": ([*FIELDS, ("more", ctypes.c_int64)], "sizeof(Background)"),
    "one with another name": ([*FIELDS[:-1], ("pace", ctypes.c_int32)], "pace"),
    "of another length": ([("now", ctypes.c_void_p * 2), *FIELDS[1:]], "sizeof(((Background *)0)->now)"),
}


@pytest.mark.parametrize("change", PLANTED)
def test_a_changed_member_is_found(change: str, wrong: Check) -> None:
    fields, said = PLANTED[change]
    planted = type("_Background", (ctypes.Structure,), {"_fields_": fields, "__module__": background.__name__})
    assert said in wrong(planted)
