"""Clips for the tests of corpora: 20 good ones, and 5 that cannot be done, each in its own way."""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foveate.pipeline.corpus.build import Manner, build
from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.corpus.jobs import Outcome, Task
from foveate.pipeline.settings import Settings

GOOD = 20
FRAMES = 6  # of each
BAD = ("damaged.mp4", "empty.mp4", "hangs.mp4", "kills.mp4", "unreadable.mp4")
PLUG_IN = '''
"""A depth model that does what some decoders do with some files."""
import os, signal, time
import numpy as np

def depth(rgb):
    height, width, _ = rgb.shape
    if (width, height) == (96, 64):
        os.kill(os.getpid(), signal.SIGKILL)
    if (width, height) == (64, 96):
        time.sleep(3600)
    return np.zeros((height, width), np.float32)
'''


def make_clips(folder: Path) -> None:
    """``good/00.mp4`` to ``good/19.mp4``, ``bad/...``, and ``model.py``."""
    (folder / "good" / "more").mkdir(parents=True)
    (folder / "bad").mkdir()
    apart = ("-g", str(FRAMES), "-f", "segment", "-segment_time", "1")
    _ffmpeg("testsrc2=size=64x48:rate=6", GOOD, *apart, to=folder / "good" / "%02d.mp4")
    (folder / "good" / "07.mp4").rename(folder / "good" / "more" / "00.mp4")  # a name that is there twice
    _ffmpeg("testsrc2=size=96x64:rate=6", 1, to=folder / "bad" / "kills.mp4")
    _ffmpeg("testsrc2=size=64x96:rate=6", 1, to=folder / "bad" / "hangs.mp4")
    whole = (folder / "good" / "00.mp4").read_bytes()
    (folder / "bad" / "damaged.mp4").write_bytes(whole[: len(whole) // 2])  # its index is in the other half
    (folder / "bad" / "unreadable.mp4").symlink_to("nowhere")
    (folder / "bad" / "empty.mp4").touch()
    (folder / "model.py").write_text(PLUG_IN)


def _ffmpeg(source: str, seconds: int, *more: str, to: Path) -> None:
    made = ["-f", "lavfi", "-i", source, "-t", str(seconds), "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt"]
    subprocess.run(["ffmpeg", "-v", "error", *made, "yuv420p", *more, str(to)], check=True)


def depth_settings(folder: Path, **changes: Any) -> Settings:
    """Settings by which each frame is shown to the plug-in."""
    return Settings.model_validate(
        {"engine": "cpu", "budget": 40, "maps": ("depth",), "depth": f"{folder}/model.py:depth", **changes}
    )


class Progress:
    """Keeps what is reported to it. See Follower."""

    def __init__(self) -> None:
        self.jobs, self.over, self.outcomes = 0, 0, list[Outcome]()

    def begin(self, jobs: int, done: int) -> None:
        self.jobs, self.over = jobs, done

    def add(self, outcome: Outcome, jobs: int) -> None:
        self.outcomes.append(outcome)


def made(sources: Sequence[Path | str], task: Task, **manner: Any) -> tuple[Progress, list[Outcome]]:
    """Build a corpus: its progress, and what failed."""
    progress = Progress()
    return progress, build(expand(map(str, sources), buckets=True), task, Manner(**manner), progress)


def contents(folder: Path | str) -> dict[str, str]:
    """The SHA-256 of every file below a folder."""
    return {
        os.path.relpath(path, folder): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in Path(folder).rglob("*")
        if path.is_file()
    }


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie that its new parent has not looked at yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
