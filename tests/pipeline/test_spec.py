"""Constants are declared once, in pipeline/spec, and every engine follows."""

import ctypes
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.errors import EngineError
from foveate.pipeline.spec import errors, geometry, keyframes, local_channels
from foveate.pipeline.spec.headers import as_float32, header, headers

ROOT = Path(errors.__file__).parents[2]
MODULES = [import_module(f"foveate.pipeline.spec.{Path(name).stem}") for name in headers("c")]
CONSTANTS = {
    name: value for module in MODULES for name, value in vars(module).items() if name in module.__annotations__
}


def test_c_follows_a_changed_constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    monkeypatch.setattr(errors, "CHROMA_WEIGHT", 0.3)
    monkeypatch.setattr(geometry, "TILE", 48)
    (tmp_path / "spec").mkdir()
    for name, text in headers("c").items():
        (tmp_path / name).write_text(text)
    (tmp_path / "told.c").write_text(
        '#include "spec/errors.h"\n#include "spec/geometry.h"\n'
        "float weight(void) { return CHROMA_WEIGHT; }\nint tile(void) { return TILE; }\n"
    )
    made = tmp_path / "told.so"
    options = ["-std=c11", "-shared", "-fPIC", f"-I{tmp_path}", "-o", str(made)]
    subprocess.run([compiler, *options, str(tmp_path / "told.c")], check=True)
    library = ctypes.CDLL(str(made))
    library.weight.restype = ctypes.c_float
    assert np.float32(library.weight()) == np.float32(0.3)
    assert library.tile() == 48


def test_every_header_compiles_as_c(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "spec").mkdir()
    for name, text in headers("c").items():
        (tmp_path / name).write_text(text)
        command = [compiler, "-std=c11", "-Wall", "-Werror", "-Wno-pragma-once-outside-header", "-fsyntax-only"]
        subprocess.run([*command, "-x", "c", "-include", str(tmp_path / name), "/dev/null"], check=True)


def test_cuda_follows_a_changed_constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    program = pytest.importorskip("foveate.cuda.driver.program")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "told.cu"
    source.write_text(
        '#include "spec/errors.h"\n#include "spec/geometry.h"\n'
        'static_assert(CHROMA_WEIGHT == 0.25f && TILE == 32, "changed");'
    )
    program.compile_cubin(source, "sm_90")
    monkeypatch.setattr(errors, "CHROMA_WEIGHT", 0.3)
    with pytest.raises(EngineError, match="changed"):  # which also tells that the cache was not asked for the old one
        program.compile_cubin(source, "sm_90")
    source.write_text('#include "spec/errors.h"\nstatic_assert(CHROMA_WEIGHT == 0.3f, "not followed");')
    program.compile_cubin(source, "sm_90")


def test_python_follows_a_changed_constant() -> None:
    code = """
from foveate.pipeline.spec import errors, memory, query_prior, score
errors.UNSEEN, errors.CHROMA_WEIGHT, memory.GAZE_KEEP, score.FOCUS_LOSS = 7.0, 0.5, 0.25, 0.0
query_prior.HIDDEN_ERROR = 3.0
from foveate.pipeline.cascade import query_prior as prior, rate_distortion, scores, temporal
from foveate.pipeline.cpu import levels
import numpy as np
assert (rate_distortion.UNSEEN, levels.CHROMA_WEIGHT, temporal.GAZE_KEEP, prior.HIDDEN_ERROR) == (7.0, 0.5, 0.25, 3.0)
assert scores.combine(*(np.full((1, 1), value, np.float32) for value in (0.5, 0.75, 1.0)))[0, 0] == 0.75
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@given(st.floats(-1e30, 1e30))
def test_floats_are_those_of_numpy_to_the_last_bit(value: float) -> None:
    text = as_float32(value)
    assert text.endswith("f")
    assert np.float32(float.fromhex(text[:-1])).tobytes() == np.float32(value).tobytes()
    assert float(np.float32(value)) == float.fromhex(text[:-1])


def test_enums_keep_their_numbers_and_other_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "enum Keyframe { NONE = 0, FIRST = 1," in header(keyframes, "cuda")
    assert "enum GridChannel { EDGES = 0," in header(local_channels, "c")
    monkeypatch.setattr(errors, "UNSEEN", "much")
    with pytest.raises(TypeError, match="UNSEEN must be an int, a float or an IntEnum, got 'much'"):
        header(errors, "c")


@pytest.mark.parametrize("room", ["pipeline", "cuda"])
def test_no_other_source_declares_a_shared_constant_again(room: str) -> None:
    number = r"-?[0-9][0-9a-fx.*+\- ()]*"
    again = []
    for path in sorted((ROOT / room).rglob("*")):
        if path.suffix not in (".c", ".h", ".cu", ".cuh", ".py") or path.parent.name == "spec":
            continue
        for name, found in re.findall(rf"\b([A-Z][A-Z_]+)(?:: Final)? = ({number})", path.read_text()):
            value = found.strip().rstrip(",;f").replace("f", "")
            if name in CONSTANTS and re.fullmatch(r"-?[0-9.]+", value) and float(value) == CONSTANTS[name]:
                again.append(f"{path.name}: {name} = {value}")
    assert not again


def test_no_kernel_holds_a_shared_number_as_a_literal() -> None:
    literals = re.compile(r"(1\.058|0\.172|0\.972|0\.003|-0\.75|64\.0f \* 64\.0)f?\b")
    files = [path for room in ("pipeline", "cuda") for path in (ROOT / room).rglob("*")]
    sources = [path for path in files if path.suffix in (".c", ".h", ".cu", ".cuh")]
    assert len(sources) > 30
    assert not [path.name for path in sources if literals.search(path.read_text())]
