"""What a corpus is made of: a task that is the same for all, jobs with stable keys, and what became of each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from foveate.pipeline.corpus.names import Input
from foveate.pipeline.errors import EngineError, SettingsError, SinkError
from foveate.pipeline.settings import Settings
from foveate.pipeline.sources.address import is_network, shown
from foveate.pipeline.sources.schemes import local

Kind = Literal["parquet", "webdataset"]
State = Literal["done", "failed", "stop"]
"""``stop``: what is wrong is not the video's, so that no other job could be done either."""
ENDING: Final = (SettingsError, EngineError, SinkError)
"""What is not wrong with a video: no other job could be done either."""

_KEY_LENGTH: Final = 60  # characters of a video's name in a key
_HASH_LENGTH: Final = 10  # hexadecimal digits behind it
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9.-]+")


@dataclass(frozen=True, slots=True)
class Task:
    """What all jobs have in common."""

    store: str  # a folder or an address
    settings: Settings
    kind: Kind = "parquet"
    segment: float | None = None  # seconds; None: a video is one job

    @property
    def suffix(self) -> str:
        """Of the files that hold frames."""
        return ".parquet" if self.kind == "parquet" else ".tar"

    def to_json(self) -> str:
        """As text, for another process."""
        return json.dumps({**asdict(self), "settings": self.settings.model_dump(mode="json")})

    @staticmethod
    def from_json(text: str) -> Task:
        """From what to_json wrote."""
        known = json.loads(text)
        return Task(**{**known, "settings": Settings.model_validate(known["settings"])})


@dataclass(frozen=True, slots=True)
class Job:
    """One video, or one segment of it, or where its length is not known yet: to find that."""

    video: str  # its name in the corpus
    address: str  # as it is opened: of a file the absolute path
    shown: str  # as the user gave it, without passwords
    size: int = 0  # bytes; 0 where that is unknown
    segment: int | None = None
    segments: int | None = None  # of the video, where it is split
    measures: bool = False  # the job is to find out how many segments the video has

    @property
    def key(self) -> str:
        """The name of the job's files: readable, no two are the same, and it depends on video and segment alone."""
        begin = _UNUSUAL.sub("_", self.video)[-_KEY_LENGTH:].lstrip("_.-")
        key = f"{begin}-{hashlib.sha256(self.video.encode()).hexdigest()[:_HASH_LENGTH]}"
        return key if self.segment is None else f"{key}-{self.segment:05d}"

    @property
    def title(self) -> str:
        """The job, for people."""
        return self.video if self.segment is None else f"{self.video}, segment {self.segment}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a job."""

    key: str
    video: str
    segment: int | None
    state: State
    reason: str = ""  # in one line; empty where it was done
    frames: int = 0
    tokens: int = 0
    damage: str = ""  # what could not be decoded, in one line
    file: str = ""  # where the frames are, below the store; empty where there are none
    bytes: int = 0
    sha256: str = ""
    segments: int | None = None  # found by a job that measures
    error: str = ""  # the name of the error with which the run has to stop

    @property
    def record(self) -> dict[str, Any]:
        """What the ledger holds of it: nothing that differs from run to run."""
        left_out = ("state", "error", "segments") + (() if self.state == "failed" else ("reason",))
        return {name: value for name, value in asdict(self).items() if name not in left_out}


def failed(job: Job, reason: str) -> Outcome:
    """The outcome of a job that failed."""
    return Outcome(job.key, job.video, job.segment, "failed", " ".join(reason.split()))


def jobs_of(inputs: Sequence[Input], segment: float | None) -> list[Job]:
    """A job for each video, the largest first; with ``segment``, jobs that find out how many segments there are."""
    jobs = [_job(each, segment is not None) for each in inputs]
    return sorted(jobs, key=lambda job: -job.size)


def segments_of(job: Job, count: int) -> list[Job]:
    """The jobs for the segments of a video; of one segment, all of it."""
    return [Job(job.video, job.address, job.shown, job.size, number, count) for number in range(count)]


def shard_of(jobs: Sequence[Job], number: int, shards: int) -> list[Job]:
    """Every ``shards``-th job, beginning with the one of ``number``, counted from 1."""
    return list(jobs[number - 1 :: shards])


def _job(video: Input, measures: bool) -> Job:
    name = video.name.encode("utf-8", "backslashreplace").decode()  # of a file it may be no text, and tables hold text
    address = local(video.address)
    if is_network(address):
        return Job(name, address, shown(video.address), video.size, measures=measures)
    path = Path(address).absolute()
    return Job(name, str(path), shown(video.address), _size(path), measures=measures)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # opening it will say what is wrong
        return 0
