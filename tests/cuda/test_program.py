"""Every kernel compiles for every architecture that is promised, on a machine without a GPU."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from foveate.cuda.driver import graph, program
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.graph import Graph
from foveate.cuda.driver.memory import Memory
from foveate.cuda.driver.program import Program, compile_cubin, struct
from foveate.cuda.state import FRAME_INPUT, FRAME_STATE
from foveate.pipeline.errors import EngineError

ROOM = Path(program.__file__).parents[1]
SOURCES = sorted(ROOM.rglob("*.cu"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_kernel_compiles(source: Path, architecture: str) -> None:
    assert compile_cubin(source, architecture)[:4] == b"\x7fELF"


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


def test_structs_mirror_their_header() -> None:
    header = (ROOM / "state.cuh").read_text()
    for name, dtype in (("FrameInput", FRAME_INPUT), ("FrameState", FRAME_STATE)):
        body = header.split(f"struct {name} {{")[1].split("};")[0]
        declared = [line.split(";")[0].split()[-1].split("[")[0] for line in body.splitlines() if ";" in line]
        assert declared == list(dtype.names or ())


def test_no_package_hides_nvidias() -> None:
    assert not (ROOM / "__init__.py").exists()


@pytest.mark.gpu
def test_a_struct_arrives_and_a_graph_replays(device: Device, stream: Stream, memory: Memory, tmp_path: Path) -> None:
    source = tmp_path / "add.cu"
    source.write_text(
        "struct Add { int* out; float third; short step[3]; long long wide; };"
        'extern "C" __global__ void add(Add p) { *p.out += p.step[2] + (int)p.wide + (int)p.third; }'
    )
    out = memory.array("out", (1,), np.int32, stream)
    kernel = Program(source, device.architecture).kernel("add")
    parameters = struct(
        out=(np.uint64, out.pointer), third=(np.float32, 3.0), step=(("i2", (3,)), (1, 2, 40)), wide=(np.int64, 500)
    )
    replayed = Graph(stream, lambda on: kernel.launch(on, 1, 1, parameters))
    assert out.download(stream)[0] == 0
    replayed.launch(stream)
    replayed.launch(stream)
    assert out.download(stream)[0] == 2 * 543
    replayed.free()


@pytest.mark.gpu
def test_running_out_of_memory_is_one_line(stream: Stream, memory: Memory) -> None:
    with pytest.raises(EngineError, match=r"has no room for the moon: \d+ MiB wanted"):
        memory.array("the moon", (1 << 20, 1 << 22), np.uint8, stream)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (EngineError("the GPU reports CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"), True),
        (LookupError("cuMemcpyHtoDAsync failed: operation failed due to a previous error during capture"), True),
        (EngineError("the GPU reports CUDA_ERROR_OUT_OF_MEMORY"), False),
    ],
)
def test_a_capture_that_another_thread_spoils_is_tried_again(
    error: Exception, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(*_: object) -> None:
        raise error

    monkeypatch.setattr(graph, "Graph", spoilt)
    monkeypatch.setattr(graph.importlib, "import_module", lambda _: SimpleNamespace(Error=LookupError))
    if again:
        assert graph.captured(None, lambda _: None) is None
    else:
        with pytest.raises(EngineError):
            graph.captured(None, lambda _: None)
