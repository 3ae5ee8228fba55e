"""``foveate doctor``: facts that can be checked otherwise, and probes that fail in every way."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy
import pytest

from foveate.app import doctor, probes
from foveate.app.main import main
from foveate.pipeline import machine

facts_here = cache(doctor.examine)


def reported(title: str, changes: dict[str, Any]) -> list[doctor.Line]:
    """The lines of the report under a title, of this machine's facts with some changed."""
    return dict(doctor.report({**facts_here(), **changes}))[title]


def test_the_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    facts = json.loads(out)
    assert facts["system"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert facts["arrays"]["numpy"] == numpy.__version__
    assert facts["arrays"]["opencv"] == cv2.__version__
    assert facts["video"]["decoders"]["h264"] is True  # the sample clips are in H.264
    assert {"clip", "corpus", "cuda", "mqtt", "ocr", "parquet", "peers", "ray", "rerun", "vlm", "web"} == facts[
        "extras"
    ].keys()
    assert ["still", "static", "unmoving", "stationary", "motionless"] in facts["queries"]
    assert {"grey", "gray"} <= set(next(words for words in facts["queries"] if words[0] == "grey"))
    assert {"qwen2_5_vl", "qwen3_vl", "glm4v"} <= set(facts["models"]["families"])
    assert facts["models"]["tried"][0] == "5.18.0"
    assert "Qwen3VLForConditionalGeneration" in facts["models"]["vllm_architectures"]
    assert {"default", "stream"} <= facts["presets"].keys()


def test_the_report_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for title in ("Machine", "Engines", "Video", "Extras", "Queries", "Models", "Presets"):
        assert f"{title}\n" in out
    assert "red/crimson/scarlet/maroon/burgundy, orange, yellow/gold/golden" in out


@pytest.mark.parametrize(
    ("version", "fine", "said"),
    [
        (None, None, "none is installed"),
        ("0.9.2", False, "0.9.2 is installed, which is too old"),
        ("0.30.1", True, "0.30.1 is installed"),
        ("0.32.0+cpu", True, "0.32.0+cpu is installed"),
        ("1.0.0rc1", True, "1.0.0rc1 is installed, which is newer"),
    ],
)
def test_whether_a_vllm_fits(version: str | None, fine: bool | None, said: str) -> None:
    models = {"transformers": None, "tried": ["5.18.0"], "families": [], "vllm": version}
    _, _, (found, _, text) = reported("Models", {"models": {**models, "vllm_tried": ["0.30.0", "0.32.0"]}})
    assert found is fine
    assert text.endswith(f"tried with vLLM 0.30.0 to 0.32.0; {said}")


def test_what_is_missing_comes_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "extras", lambda: {"clip": {"torch": None, "numpy": "2"}, "web": {"numpy": "2"}})
    found = doctor.examine()["extras"]
    assert found["clip"]["install"].startswith("pip install ")
    assert "[clip]" in found["clip"]["install"]
    assert found["web"]["install"] is None
    lines = {name: text for _, name, text in reported("Extras", {"extras": found})}
    assert lines["clip"].startswith("lacks torch: pip install ")


@pytest.mark.parametrize(
    ("driver", "answer", "problem"),
    [
        (None, {"error": "no library"}, "no NVIDIA driver is loaded"),
        ("570.1", {"error": "no library"}, "no library"),
        ("570.1", {"code": 100, "version": 12080, "devices": 0}, "the driver offers no device (CUDA error 100)"),
        ("570.1", {"code": 0, "version": 12080, "devices": 1}, None),
    ],
)
def test_why_there_is_no_gpu(driver: str | None, answer: dict[str, Any], problem: str | None) -> None:
    found = probes.gpu_facts(driver, [], answer)
    assert found["problem"] == problem
    assert found.get("cuda") == (None if problem else "12.8")


GPU = {"devices": ["Card, 8 GiB"], "driver": "570.1", "cuda": "12.8", "problem": None}
CHOOSING = (None, "on the GPU by one and other, else on the CPU")


@pytest.mark.parametrize(
    ("engine", "lines"),
    [
        ({"problem": "no pycuda", "decoding": None, "decodes": {}}, [(False, "no pycuda")]),
        (
            {"problem": None, "decoding": "no libnvcuvid", "decodes": {}},
            [(True, "Card"), (False, "no libnvcuvid"), CHOOSING],
        ),
        ({"problem": None, "decoding": None, "decodes": {}}, [(True, "Card"), (False, "nothing"), CHOOSING]),
        (
            {"problem": None, "decoding": None, "decodes": {"H264 8-bit": "4096x4096"}},
            [(True, "CUDA 12.8"), (True, "H264 8-bit up to 4096x4096"), CHOOSING],
        ),
    ],
)
def test_what_is_told_of_the_cuda_engine(engine: dict[str, Any], lines: list[tuple[bool | None, str]]) -> None:
    told = reported("Engines", {"gpu": GPU, "cuda": {**engine, "chooses": ["one", "other"]}})[1:]
    assert [fine for fine, _, _ in told] == [fine for fine, _ in lines]
    assert all(part in text for (_, part), (_, _, text) in zip(lines, told, strict=True))


def test_the_cuda_engine_is_asked_in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    found = probes.cuda_engine()
    assert found.keys() == {"problem", "decoding", "decodes", "chooses"}
    assert found["chooses"] == ["rate_distortion", "three_stage", "five_stage", "adaptive", "soft", "foveated"]
    monkeypatch.setattr(sys, "executable", "false")
    assert "failed" in probes.cuda_engine()["problem"]


@pytest.mark.parametrize("code", ["import os; os.abort()", "raise SystemExit(1)", "import time; time.sleep(60)"])
def test_a_driver_that_ends_or_hangs_the_process_harms_no_one(code: str) -> None:
    assert probes.output_of([sys.executable, "-c", code], limit=0.5) is None


def test_a_program_that_is_missing_says_nothing() -> None:
    assert probes.output_of(["no-such-program"]) is None


def test_memory_and_cores_agree_with_the_system() -> None:
    found = machine.system()
    assert found["cores"] == int(subprocess.check_output(["nproc"]))
    total = int(Path("/proc/meminfo").read_text().split()[1]) / 2**20
    assert 0 < found["memory_gib"] <= total + 0.1
