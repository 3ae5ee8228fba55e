"""A corpus on the card: the same bytes by one process and by several."""

import shutil
from pathlib import Path

import pytest

from foveate.pipeline.corpus.jobs import Task
from foveate.pipeline.settings import Settings
from tests.pipeline.corpus_cases import contents, made

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("segment", [None, 2.0])
def test_processes_give_the_bytes_of_one(segment: float | None, samples: Path, tmp_path: Path) -> None:
    for name in ("tree.mp4", "bunny.mp4", "pedestrians.mp4"):
        (tmp_path / "clips").mkdir(exist_ok=True)
        shutil.copy(samples / name, tmp_path / "clips" / name)
    for workers in (0, 2):
        task = Task(str(tmp_path / str(workers)), Settings(engine="cuda"), segment=segment)
        progress, failures = made([tmp_path / "clips"], task, workers=workers)
        assert failures == []
        assert sum(outcome.frames for outcome in progress.outcomes) > 300
    assert contents(tmp_path / "0") == contents(tmp_path / "2")
