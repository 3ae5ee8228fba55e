"""What pyproject.toml promises of extras: each brings what some code imports, and 'all' brings all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

# Packages whose modules have another name than they.
MODULES = {
    "cuda-bindings": "cuda.bindings",
    "nvidia-cuda-nvrtc": "nvrtc",  # loaded by cuda.bindings
    "open-clip-torch": "open_clip",
    "prometheus-client": "prometheus_client",
    "scikit-learn": "sklearn",
    "torchvision": "open_clip",  # which asks for it
}


def package(requirement: str) -> str:
    """The name in a requirement."""
    return re.split(r"[<>=~!\[ ]", requirement)[0].replace("_", "-")


def test_every_extra_brings_what_some_code_uses() -> None:
    rooms = [path for room in ("app", "bench", "cuda", "pipeline") for path in (ROOT / room).rglob("*.py")]
    code = "\n".join(path.read_text() for path in rooms)
    for extra, requirements in EXTRAS.items():
        if extra in ("all", "dev"):
            continue
        for name in map(package, requirements):
            used = rf"(import |from |find_spec\(\"){MODULES.get(name, name)}\b"
            assert re.search(used, code), (extra, name)


def test_all_is_all() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything.split("[")[1])) == EXTRAS.keys() - {"all", "dev"}
