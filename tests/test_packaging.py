"""What pyproject.toml says of packages, extras and the version is so."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]

# Packages whose modules have another name than they.
MODULES = {
    "cuda-bindings": "cuda.bindings",
    "nvidia-cuda-nvrtc": "nvrtc",  # loaded by cuda.bindings
    "open-clip-torch": "open_clip",
    "paho-mqtt": "paho",
    "prometheus-client": "prometheus_client",
    "rerun-sdk": "rerun",
    "scenedetect-headless": "scenedetect",
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


def test_every_folder_of_code_is_a_package() -> None:
    rooms = ("app", "bench", "configs", "cuda", "pipeline")
    found = {path.parent for room in rooms for path in (ROOT / room).rglob("*") if path.suffix in (".py", ".toml")}
    names = {"foveate." + ".".join(folder.relative_to(ROOT).parts) for folder in found if folder.name != "layouts"}
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(names | {"foveate"})


def test_the_citation_names_the_version() -> None:
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {PROJECT['project']['version']}\n" in cited
    assert f"\n## {PROJECT['project']['version']}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
