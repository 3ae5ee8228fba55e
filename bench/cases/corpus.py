"""What ``foveate corpus`` takes longer by processes than one process alone, for short clips; the bytes must be equal:

python -m foveate.bench.cases.corpus --out corpus.json
"""

import hashlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from statistics import median
from typing import Annotated, Final

from tyro.conf import arg

from foveate.bench.case import RedCheckError
from foveate.bench.cases.memory import moving_pattern
from foveate.bench.clips.encoding import FAST, encode, grey_frame
from foveate.bench.entry import Out, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.settings_errors import check_count

MOST: Final = 3.0
"""Seconds that processes may take longer than one process alone."""
_RATE: Final = Fraction(25)
_SIZE: Final = (320, 240)


def corpus(
    out: Out = None,
    clips: Annotated[int, arg(metavar="N", help="How many clips.")] = 20,
    frames: Annotated[int, arg(metavar="N", help="Frames of each.")] = 25,
    workers: Annotated[int, arg(metavar="N", help="Processes.")] = 2,
    repeats: Annotated[int, arg(metavar="N", help="Runs of each kind, in turns; the median counts.")] = 3,
) -> None:
    """Measure how long a corpus of short clips takes by one process alone, and by several."""
    for name, value in {"clips": clips, "frames": frames, "workers": workers, "repeats": repeats}.items():
        check_count(name, value, 1, 10_000)
    record = new_record("corpus", out, clips=clips, frames=frames, most_s=MOST)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        place = Path(folder)
        _make_clips(place / "clips", clips, frames)
        seconds: dict[int, list[float]] = {0: [], workers: []}
        for repeat in range(repeats):
            made = {count: place / f"{repeat}-{count}" for count in seconds}
            for count, store in made.items():
                seconds[count].append(_timed(place / "clips", store, count))
            check_equal(*made.values())
    alone, several = median(seconds[0]), median(seconds[workers])
    say(f"alone {alone:.2f} s, {workers} processes {several:.2f} s, may be {MOST} s more")
    for count, samples in seconds.items():
        record["cases"].append({"name": f"{count} workers", "workers": count, "samples_s": samples})
    hand_out(record | {"extra_s": several - alone}, out)
    if several > alone + MOST:
        raise RedCheckError(f"{workers} processes take {several - alone:.2f} s longer, may be {MOST}")


def _make_clips(folder: Path, count: int, frames: int) -> None:
    folder.mkdir()
    pictures = list(map(grey_frame, moving_pattern(*_SIZE, frames + count)))
    for number in range(count):
        encode(folder / f"{number:03d}.mp4", pictures[number : number + frames], _RATE, FAST)


def _timed(clips: Path, store: Path, workers: int) -> float:
    """Seconds of one command, from its start to its end. Raises RedCheckError where it fails."""
    command = [sys.executable, "-m", "foveate", "corpus", str(clips), "--out", str(store), "--workers", str(workers)]
    begin = time.perf_counter()
    done = subprocess.run([*command, "-q"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RedCheckError(f"foveate corpus ended with {done.returncode}: {done.stderr.strip()}")
    return time.perf_counter() - begin


def check_equal(*stores: Path) -> None:
    """Raise RedCheckError where two folders do not hold the same files."""
    one, *others = map(_contents, stores)
    if any(other != one for other in others):
        raise RedCheckError("the corpora differ, and should have the same bytes")


def _contents(store: Path) -> Sequence[tuple[str, str]]:
    files = sorted(path for path in store.rglob("*") if path.is_file())
    return [(str(path.relative_to(store)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]


if __name__ == "__main__":
    run_module(corpus)
