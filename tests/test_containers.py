"""What the image files and the compose file name exists. Building them takes a container engine."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.routing import Route

from foveate.app.console import Console
from foveate.app.live.arguments import live_arguments
from foveate.app.web.site import Site

ROOT = Path(__file__).resolve().parents[1]
DOCKER = ROOT / "docker"
IMAGES = ("Dockerfile", "Dockerfile.nvidia")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
COMPOSE: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
(SCRAPED,) = yaml.safe_load((DOCKER / "prometheus.yaml").read_text())["scrape_configs"]


def arguments_of(image: str) -> dict[str, str]:
    """The build arguments of an image, by name."""
    return dict(re.findall(r"^ARG (\w+)=(\S+)$", (DOCKER / image).read_text(), re.MULTILINE))


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_gets_all_that_the_package_is_built_from(image: str) -> None:
    lines = (DOCKER / f"{image}.dockerignore").read_text().splitlines()
    assert "*" in lines
    sent = {line[1:] for line in lines if line.startswith("!")}
    rooms = set(PROJECT["tool"]["setuptools"]["package-dir"].values())
    project = PROJECT["project"]
    assert sent == {*rooms, "pyproject.toml", "setup.py", project["readme"], *project["license-files"]}
    assert all((ROOT / name).exists() for name in sent)


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_installs_extras_that_exist(image: str) -> None:
    extras = set(arguments_of(image)["EXTRAS"].split(","))
    assert extras <= PROJECT["project"]["optional-dependencies"].keys()
    assert "web" in extras
    assert ("cuda" in extras) == (image == "Dockerfile.nvidia")


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_runs_foveate_as_a_user_without_rights(image: str) -> None:
    text = (DOCKER / image).read_text()
    *_, last = re.split(r"^FROM ", text, flags=re.MULTILINE)
    (user,) = re.findall(r"^USER (\w+)$", last, re.MULTILINE)
    assert user != "root"
    assert f"useradd --uid 10001 --create-home {user} " in last
    (command,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', last, re.MULTILINE)
    assert command in PROJECT["project"]["scripts"]
    for compiler in ("gcc", "g++", "devel"):
        assert compiler not in last
    for stage in re.findall(r"--from=(\w+)", last):
        assert f" AS {stage}\n" in text


def test_the_python_of_the_image_will_do() -> None:
    lowest = PROJECT["project"]["requires-python"].removeprefix(">=")
    python = arguments_of("Dockerfile")["PYTHON"]
    assert [int(part) for part in python.split(".")] >= [int(part) for part in lowest.split(".")]


def test_the_services_name_what_exists() -> None:
    for name, service in SERVICES.items():
        assert set(service.get("depends_on", [])) <= SERVICES.keys(), name
        assert set(service.get("secrets", [])) <= COMPOSE["secrets"].keys(), name
        for source, _ in (volume.split(":", 1) for volume in service.get("volumes", [])):
            assert (DOCKER / source).exists() if source.startswith(".") else source in COMPOSE["volumes"], name
    build = SERVICES["foveate"]["build"]
    assert (DOCKER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_foveate_understands_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    service = SERVICES["foveate"]
    for name, value in service["environment"].items():
        monkeypatch.setenv(name, value)
    command, *words = service["command"]
    assert command == "live"
    arguments = live_arguments(words, Console())
    assert arguments.addresses == tuple(service["environment"].values())
    assert service["environment"]["DOOR"] in SERVICES["player"]["command"]
    (secret,) = service["secrets"]
    assert arguments.web_token == f"/run/secrets/{secret}"


def test_the_page_is_where_the_others_look() -> None:
    service = SERVICES["foveate"]
    (port,) = {word.rpartition(":")[2] for word in service["command"] if word.startswith("--web=")}
    (published,) = service["ports"]
    assert published == f"127.0.0.1:{port}:{port}"
    site = Site((), lambda: True).application(None, frozenset())
    paths = {route.path for route in site.routes if isinstance(route, Route)}
    (health,) = re.findall(rf"'http://127.0.0.1:{port}(/\w+)'", service["healthcheck"]["test"][-1])
    assert {SCRAPED["metrics_path"], health} <= paths
    assert SCRAPED["static_configs"] == [{"targets": [f"foveate:{port}"]}]
    (secret,) = SERVICES["prometheus"]["secrets"]
    assert SCRAPED["authorization"] == {"credentials_file": f"/run/secrets/{secret}"}


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_understands_its_file(tmp_path: Path) -> None:
    secret = tmp_path / "web_token"
    secret.write_text("0123456789")
    text = (DOCKER / "prometheus.yaml").read_text().replace("/run/secrets/web_token", str(secret))
    (tmp_path / "prometheus.yaml").write_text(text)
    subprocess.run(["promtool", "check", "config", str(tmp_path / "prometheus.yaml")], check=True)
