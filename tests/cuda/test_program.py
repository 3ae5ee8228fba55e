"""Every kernel compiles for every architecture that is promised, on a machine without a GPU."""

import ast
import re
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from foveate.cuda.driver import graph, program
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.graph import Graph, GraphCapture
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.driver.program import Program, compile_cubin
from foveate.cuda.driver.structs import Layouts, constants, layouts, parameters
from foveate.pipeline.errors import EngineError

ROOM = Path(program.__file__).parents[1]
SOURCES = sorted(ROOM.rglob("*.cu"))
WRAPPERS = [path for path in sorted(ROOM.rglob("*.py")) if ".parameters(" in path.read_text()]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_compiles(source: Path, architecture: str, tmp_path: Path) -> None:
    """And the compiler lays out the structs as the host does."""
    checked = tmp_path / source.name
    checked.write_text(f'#include "{source}"\n{layout_checks(layouts(source))}')
    assert compile_cubin(checked, architecture)[:4] == b"\x7fELF"


def layout_checks(structs: Layouts) -> str:
    """C++ that compiles only where the compiler lays out ``structs`` in the same way."""
    lines = []
    for name, kind in structs.items():
        lines.append(f'static_assert(sizeof({name}) == {kind.itemsize}, "the size of {name}");')
        for field, (_, offset, *_) in (kind.fields or {}).items():
            place = f"__INTADDR__(&(({name}*)0)->{field})"  # what CUDA's offsetof is made of
            lines.append(f'static_assert({place} == {offset}, "the place of {name}.{field}");')
    return "\n".join(lines)


def test_a_wrong_layout_is_told(tmp_path: Path) -> None:
    source = tmp_path / "one.cu"
    source.write_text("struct One { float a; double b; };\n" + layout_checks({"One": np.dtype("f4, f8")}))
    with pytest.raises(EngineError, match="the size of One"):
        compile_cubin(source, "sm_90")


STRUCTS = """
#include "spec/geometry.h"
const int COUNT = 3;
typedef unsigned char u8;
struct Pair { const float* a[2]; int n; };  // both are read
struct All {
    Pair pairs[COUNT];  // int not_this;
    u8 flag, flags[2][3];
    const u8* const* far;
    long long wide;
    double cells[CELL];
};
struct Own { float4 value; };
"""


def test_structs_are_read_from_the_source(tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text(STRUCTS)
    structs = layouts(tmp_path / "one.cu")
    assert set(structs) == {"Pair", "All"}
    assert structs["Pair"] == np.dtype([("a", "u8", (2,)), ("n", "i4")], align=True)
    kinds = [("pairs", structs["Pair"], (3,)), ("flag", "u1"), ("flags", "u1", (2, 3))]
    assert structs["All"] == np.dtype([*kinds, ("far", "u8"), ("wide", "i8"), ("cells", "f8", (16,))], align=True)


def test_every_field_is_given_and_no_other() -> None:
    kind = np.dtype([("a", "u8"), ("b", "u8", (2,)), ("c", [("x", "i4"), ("y", "u8", (2,))], (1,))], align=True)
    array = DeviceArray("one", (1,), np.dtype("u1"), 256)
    assert parameters(kind, a=array, b=(None, array), c=[(5, [array, 7])]) == np.array(
        (256, (0, 256), [(5, (256, 7))]), kind
    )
    with pytest.raises(TypeError, match="fields are a, b, c; left out or not there: c, d"):
        parameters(kind, a=0, b=0, d=0)


@pytest.mark.parametrize("path", WRAPPERS, ids=lambda path: path.stem)
def test_wrappers_fill_in_the_structs_of_their_kernels(path: Path) -> None:
    """Needs no GPU: what Program.parameters would refuse."""
    structs = {name: kind for source in path.parent.glob("*.cu") for name, kind in layouts(source).items()}
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    packed = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "parameters"]
    assert packed
    for call in packed:
        assert isinstance(call.args[0], ast.Constant)
        assert {word.arg for word in call.keywords} == set(structs[call.args[0].value].names or ())


KERNEL = re.compile(r'extern "C" __global__ void (?:TOGETHER )?__launch_bounds__\((\w+)[^)]*\) (\w+)\(')


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_the_number_of_threads_is_a_constant_of_the_source(source: Path) -> None:
    bounds = {name: threads for threads, name in KERNEL.findall(source.read_text())}
    assert len(bounds) == source.read_text().count("__global__")
    assert set(bounds.values()) <= set(constants(source))


@pytest.mark.parametrize("path", WRAPPERS, ids=lambda path: path.stem)
def test_wrappers_launch_kernels_with_the_threads_of_their_bounds(path: Path) -> None:
    bounds = {name: bound for source in path.parent.glob("*.cu") for bound, name in KERNEL.findall(source.read_text())}
    calls = re.findall(r'kernel\("(\w+)"(?:, "(\w+)")?\)', path.read_text())
    assert [bounds[name] for name, _ in calls] == [threads or "THREADS" for _, threads in calls]


def test_constants_are_read_from_the_source_and_its_headers(tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text(STRUCTS)
    found = constants(tmp_path / "one.cu")
    assert (found["COUNT"], found["CELL"]) == (3, 16)


def test_a_second_request_is_answered_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "one.cu"
    source.write_text('extern "C" __global__ void one(int* out) { *out = 1; }')
    first = compile_cubin(source, "sm_90")
    monkeypatch.setattr(program, "_compile", lambda *_: pytest.fail("compiled again"))
    assert compile_cubin(source, "sm_90") == first
    source.write_text('extern "C" __global__ void one(int* out) { *out = 2; }')
    with pytest.raises(pytest.fail.Exception):
        compile_cubin(source, "sm_90")


def test_a_kernel_that_does_not_compile_is_one_error(tmp_path: Path) -> None:
    source = tmp_path / "wrong.cu"
    source.write_text("__global__ void wrong() { nonsense; }")
    with pytest.raises(EngineError, match=r"wrong\.cu does not compile for sm_90: .*nonsense"):
        compile_cubin(source, "sm_90")


def test_a_cache_that_cannot_be_written_harms_no_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    source = tmp_path / "one.cu"
    source.write_text('extern "C" __global__ void one(int* out) { *out = 1; }')
    assert compile_cubin(source, "sm_90")


def test_no_package_hides_nvidias() -> None:
    assert not (ROOM / "__init__.py").exists()


@pytest.mark.gpu
def test_a_struct_arrives_and_a_graph_replays(device: Device, stream: Stream, memory: Memory, tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    source.write_text(
        "const int THREADS = 1;\n"
        "struct Add { int* out; float third; short step[3]; long long wide; };"
        'extern "C" __global__ void add(Add p) { *p.out += p.step[2] + (int)p.wide + (int)p.third; }'
    )
    out = memory.array("out", (1,), np.int32, stream)
    program = Program(source, device.architecture)
    kernel = program.kernel("add")
    parameters = program.parameters("Add", out=out, third=3.0, step=(1, 2, 40), wide=500)
    replayed = Graph(stream, lambda on: kernel.launch(on, 1, parameters))
    assert out.download(stream)[0] == 0
    replayed.launch(stream)
    replayed.launch(stream)
    assert out.download(stream)[0] == 2 * 543
    replayed.free()


@pytest.mark.gpu
def test_running_out_of_memory_is_one_line(stream: Stream, memory: Memory) -> None:
    with pytest.raises(EngineError, match=r"has no room for the moon: \d+ MiB wanted"):
        memory.array("the moon", (1 << 20, 1 << 22), np.uint8, stream)


@pytest.mark.gpu
def test_a_capture_that_fails_can_be_tried_again(device: Device, stream: Stream, memory: Memory) -> None:
    array = memory.array("zeros", (4,), np.float32, stream)
    capture = GraphCapture()
    assert capture.captured(stream, lambda _: device.synchronize()) is None  # invalidates the capture

    def faulty(_: Stream) -> None:
        raise EngineError("the kernel cannot be launched")

    assert capture.captured(stream, faulty) is None
    again = capture.captured(stream, lambda on: array.fill(0, on))
    assert again is not None
    again.launch(stream)
    again.free()


def test_what_is_no_fault_of_the_capture_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(*_: object) -> None:
        raise EngineError("the GPU reports CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr(graph, "Graph", without_memory)
    with pytest.raises(EngineError, match="OUT_OF_MEMORY"):
        GraphCapture().captured(cast("Stream", None), lambda _: None)
