"""The same corpus by actors of a Ray cluster on this machine; needs Ray."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from foveate.pipeline.corpus import ray_actors
from foveate.pipeline.corpus.jobs import Task
from foveate.pipeline.corpus.ray_data import FrameRows
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.settings import Settings
from tests.pipeline.corpus_cases import BAD, FRAMES, GOOD, contents, depth_settings, made, make_clips

ray: Any = pytest.importorskip("ray", reason="needs Ray: pip install -e '.[ray]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # Ray's own


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ray")
    make_clips(folder)
    return folder


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    yield
    ray.shutdown()


def test_good_and_bad_clips(clips: Path, tmp_path: Path) -> None:
    settings = depth_settings(clips)
    made([clips / "good"], Task(str(tmp_path / "alone"), settings), workers=0)
    task = Task(str(tmp_path / "actors"), settings)
    progress, failures = made([clips / "good"], task, ray="local", workers=2)
    assert (len(progress.outcomes), failures) == (GOOD, [])
    assert contents(tmp_path / "actors") == contents(tmp_path / "alone")

    both = Task(str(tmp_path / "both"), settings)
    progress, failures = made([clips / "good", clips / "bad"], both, ray="local", workers=2, limit=20)
    assert [outcome.video for outcome in failures] == [f"bad/{name}" for name in BAD]
    said = dict(zip(BAD, (outcome.reason for outcome in failures), strict=True))
    assert said["hangs.mp4"] == "bad/hangs.mp4: not done within 20 s (--limit)"
    assert said["kills.mp4"] == "bad/kills.mp4: its Ray actor died, 2 times"
    assert len(list((tmp_path / "both" / "frames").iterdir())) == GOOD
    progress, _ = made([clips / "good", clips / "bad"], both, ray="local", workers=2, limit=20)
    assert (progress.jobs, progress.over) == (0, GOOD + len(BAD))


def test_a_cluster_without_room(clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_actors, "BEGINS", 1.0)
    with pytest.raises(EngineError, match="has begun no worker"):
        made([clips / "good"], Task(str(tmp_path), Settings(engine="cpu")), ray="local", gpus=float(10**6))


def test_nobody_answers(clips: Path, tmp_path: Path, silent: int) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        for port, said in ((unused.getsockname()[1], "nobody answers there"), (silent, "no Ray cluster answers there")):
            with pytest.raises(EngineError, match=said):
                made([clips / "good"], Task(str(tmp_path / "x"), Settings()), ray=f"127.0.0.1:{port}")
    assert not (tmp_path / "x").exists()


def test_the_cluster_of_this_machine_is_gone(tmp_path: Path, silent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray notes the address of the last one in a file, and would wait for it for minutes."""
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(EngineError, match=r"^--ray auto: no cluster runs on this machine; start one"):
        ray_actors.RayExecutor(Task("store", Settings()), "auto")
    (tmp_path / "ray").mkdir(exist_ok=True)
    (tmp_path / "ray" / "ray_current_cluster").write_text(f"127.0.0.1:{silent}")
    with pytest.raises(EngineError, match=r"^--ray auto: no Ray cluster answers there within 8 s"):
        ray_actors.RayExecutor(Task("store", Settings()), "auto")


def test_a_cluster_that_wants_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which ``ray start`` asks for by default, from 2.60 on, where the machine has one; what its health check says."""
    said = "ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken: Authentication token is missing"
    answer = subprocess.CompletedProcess([], 1, "", f"Traceback (most recent call last):\n{said}\n")
    monkeypatch.setattr(ray_actors.subprocess, "run", lambda *_, **__: answer)
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(
            EngineError, match=f"^--ray {address}: the cluster wants its token; set RAY_AUTH_MODE=token"
        ):
            ray_actors.RayExecutor(Task("store", Settings()), address)


@pytest.mark.parametrize(
    ("address", "said"),
    [("ray://host:1", "an address is HOST:PORT"), ("somewhere", "must be HOST:PORT, auto or local")],
)
def test_what_is_no_address(address: str, said: str, clips: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=said):
        made([clips / "good"], Task(str(tmp_path / "x"), Settings()), ray=address)


def test_a_pipeline_of_ray_data(clips: Path) -> None:
    pytest.importorskip("pandas", reason="Ray Data needs pandas")
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
    ray.init(address="local", num_cpus=2, log_to_driver=False)
    paths = sorted(map(str, (clips / "good").glob("*.mp4")))[:3]
    rows = ray.data.from_items([{"path": path} for path in paths]).flat_map(
        FrameRows, fn_constructor_kwargs={"budget": 40, "engine": "cpu"}, concurrency=1
    )
    counted = rows.select_columns(["video", "index"]).take_all()
    assert sorted((row["video"], row["index"]) for row in counted) == [(p, i) for p in paths for i in range(FRAMES)]
