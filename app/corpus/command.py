"""``foveate corpus``: makes the corpus, shows how it goes, and says at the end what failed."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from foveate.app.console import Console
from foveate.app.corpus.arguments import CorpusArguments
from foveate.app.corpus.progress import JobsShown, jobs_shown
from foveate.app.signals import Interruption
from foveate.pipeline.corpus.build import build
from foveate.pipeline.corpus.fork_server import ForkServer
from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.corpus.jobs import Outcome
from foveate.pipeline.corpus.ledger import FAILURES
from foveate.pipeline.exits import Exit

_LISTED: Final = 100  # videos that failed, one a line; of more, a file says it


@dataclass(slots=True)
class Account:
    """What this run has done. Is a Follower of the corpus."""

    shown: JobsShown
    began: float = field(default_factory=time.perf_counter)
    before: int = 0  # jobs that were done before
    done: int = 0
    failed: int = 0
    frames: int = 0
    tokens: int = 0
    damaged: dict[str, str] = field(default_factory=dict)

    def begin(self, jobs: int, done: int) -> None:
        """See Follower."""
        self.before = done
        self.shown.begin(jobs)

    def add(self, outcome: Outcome, jobs: int) -> None:
        """See Follower."""
        self.failed += outcome.state == "failed"
        if outcome.state == "done" and outcome.segments is None:
            self.done += 1
            self.frames, self.tokens = self.frames + outcome.frames, self.tokens + outcome.tokens
        if outcome.damage:
            self.damaged[outcome.key] = f"{outcome.video}: {outcome.damage}"
        self.shown.advance(jobs, self.failed, self.frames / (time.perf_counter() - self.began))

    @property
    def summary(self) -> Sequence[str]:
        """What was done, in lines."""
        seconds = time.perf_counter() - self.began
        before = f", {self.before} were over before" if self.before else ""
        rate = f"{self.frames} frames, {self.tokens} tokens in {seconds:.1f} s, {self.frames / seconds:.1f} fps"
        return [f"{self.done} jobs done, {self.failed} failed{before}", rate]


def corpus(arguments: CorpusArguments, console: Console, server: ForkServer | None = None) -> int:
    """Do what is missing of the corpus. Returns the exit code: 1 where a job of the whole corpus has failed.

    ``server`` was started before, to fork workers; without one, it is started where processes do the work.

    Raises SourceError, SettingsError, EngineError and SinkError.
    """
    with Interruption() as interruption:
        account = None
        try:
            inputs = expand(arguments.addresses, buckets=True)
            with jobs_shown(arguments.quiet) as shown:
                account = Account(shown)
                failures = build(inputs, arguments.task, arguments.manner, account, server)
        except KeyboardInterrupt:
            done = 0 if account is None else account.done
            console.say(f"interrupted after {done} jobs; the same command goes on from here")
            return interruption.code
    if not arguments.quiet:
        for line in (*account.summary, f"wrote {arguments.task.store}"):
            console.say(line)
    return _conclude(account, failures, arguments.task.store, console)


def _conclude(account: Account, failures: Sequence[Outcome], store: str, console: Console) -> int:
    for lost in account.damaged.values():
        console.warn(lost)
    for outcome in failures[:_LISTED]:
        console.error(outcome.reason)
    if len(failures) > _LISTED:
        console.error(f"{len(failures) - _LISTED:,} more failed; {store}/{FAILURES} lists all of them")
    if failures:
        return Exit.FAILED
    return Exit.DAMAGED if account.damaged else Exit.DONE
