"""``foveate run`` for several videos, one after the other; an error in one does not stop the others."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from foveate.app.console import Console
from foveate.app.damage import told_damage
from foveate.app.progress import SeveralProgress, progress_of_several
from foveate.app.signals import Interruption, interruptible
from foveate.app.tally import Tally
from foveate.app.writer import Writer
from foveate.pipeline.corpus.names import Input
from foveate.pipeline.errors import EngineError, FoveateError, SettingsError, one_line
from foveate.pipeline.exits import Exit


@dataclass(slots=True)
class Record:
    """The results of all videos."""

    total: Tally = field(default_factory=Tally)
    done: int = 0
    damaged: dict[str, str] = field(default_factory=dict)  # what is lost of a video, by its name
    failed: dict[str, str] = field(default_factory=dict)  # why, in one line


def run_several(inputs: Sequence[Input], writer: Writer, console: Console) -> int:
    """Write the outputs of each video. Returns the exit code: 1 if any failed.

    Raises SettingsError and EngineError, which are the same for all, and are found before any file is opened.
    """
    record = Record()
    with Interruption() as interruption:
        try:
            with progress_of_several(len(inputs), writer.shown) as shown:
                for video in inputs:
                    _run_next(video, writer, record, shown, interruption)
                    interruption.check()
        except KeyboardInterrupt:
            console.say(f"interrupted after {record.done} of {len(inputs)} videos, {record.total.frames} frames")
            return interruption.code
    return _conclude(record, writer, console)


def _run_next(video: Input, writer: Writer, record: Record, shown: SeveralProgress, interruption: Interruption) -> None:
    tally = Tally()
    try:
        stream = interruptible(lambda: writer.open(video, tally))
        writer.write(stream, video, tally, shown.begin(*writer.title(stream)), interruption)
        record.done += 1
        damage = told_damage(stream.damage)
        if damage is not None:
            record.damaged[video.name] = damage
    except (SettingsError, EngineError):
        raise
    except FoveateError as error:
        record.failed[video.name] = str(error)
    except Exception as error:  # noqa: BLE001 - of one video, whatever it is
        record.failed[video.name] = f"{video.name}: {type(error).__name__}: {one_line(error)}"
    finally:
        record.total.include(tally)
        shown.end(failed=len(record.failed))


def _conclude(record: Record, writer: Writer, console: Console) -> int:
    """Print what was done, and the errors, also when quiet."""
    record.total.seconds = time.perf_counter() - record.total.began
    if not writer.arguments.quiet:
        from foveate.app.summary import print_several

        print_several(record.total, record.done, record.done + len(record.failed))
    for name, lost in record.damaged.items():
        console.warn(f"{name}: {lost}")
    for reason in record.failed.values():
        console.error(reason)
    if record.failed:
        return Exit.FAILED
    return Exit.DAMAGED if record.damaged else Exit.DONE
