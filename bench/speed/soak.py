"""``foveate live`` for a long time while its server is killed and started again: its records are checked, and what it
holds must not grow.

python -m foveate.bench.speed.soak rtsp://127.0.0.1:8554/camera --server 'COMMAND THAT SERVES IT' --out soak.json
"""

import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from tyro.conf import Positional, arg

from foveate.bench.case import RedCheckError
from foveate.bench.entry import Out, check_least, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.bench.speed.resident import STEADY, growth, held

_DOWN: Final = 0.5  # seconds that the server is away
_BACK: Final = 30.0  # seconds within which records come again
_END: Final = 30.0  # seconds that the command gets to end


def soak(
    address: Annotated[Positional[str], arg(metavar="ADDRESS", help="What the server sends.")],
    server: Annotated[str, arg(metavar="COMMAND", help="Serves it until it is killed.")],
    out: Out = None,
    seconds: Annotated[int, arg(metavar="N", help="How long.")] = 1860,
    restarts: Annotated[int, arg(metavar="N", help="Of the server, evenly over that time.")] = 50,
) -> None:
    """Read a live source for a long time, through restarts of its server."""
    record = new_record("soak", out, seconds=seconds, restarts=restarts)
    check_least(1, seconds=seconds)
    check_least(5, restarts=restarts)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        file = Path(folder) / "tokens.jsonl"
        record["samples"] = _watch(address, shlex.split(server), file, seconds, restarts)
        record |= _checked(file)
    samples = record["samples"]
    grown = record["growth"] = growth(samples, STEADY)
    say(
        f"{seconds} s, {restarts} restarts: {record['records']} records, {record['discontinuities']} of them first "
        f"after a restart, back after {max(sample['back_s'] for sample in samples):.1f} s at most; memory "
        f"{samples[-1]['host_mib']:.1f} MiB, grown by {grown['host_mib']:.1f} MiB; "
        f"{samples[-1]['threads']:.0f} threads, {samples[-1]['descriptors']:.0f} open files and sockets"
    )
    hand_out(record, out)
    if any(grown[name] > most for name, most in STEADY.items()):
        raise RedCheckError(f"what the process holds grows: {grown}")
    if record["discontinuities"] != restarts:
        raise RedCheckError(f"{record['discontinuities']} connections after the first one, for {restarts} restarts")


def _watch(address: str, server: list[str], file: Path, seconds: int, restarts: int) -> list[dict[str, float]]:
    """What was seen after each restart. Raises RedCheckError."""
    samples: list[dict[str, float]] = []
    begin = time.monotonic()
    sender = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with _reader(address, file, seconds) as reader:
            _wait_for_more(reader, file, 0)
            for number in range(1, restarts + 1):
                time.sleep(max(0.0, begin + number * seconds / (restarts + 1) - time.monotonic()))
                sender.kill()
                sender.wait()
                time.sleep(_DOWN)
                length, away = file.stat().st_size, time.monotonic()
                sender = subprocess.Popen(server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                _wait_for_more(reader, file, length)
                samples.append({"restarts": number, "back_s": time.monotonic() - away, **held(reader.pid)})
            time.sleep(max(0.0, begin + seconds - time.monotonic()))
    finally:
        sender.kill()
        sender.wait()
    return samples


@contextmanager
def _reader(address: str, file: Path, seconds: int) -> Iterator[subprocess.Popen[bytes]]:
    """``foveate live``, which ends by itself where nothing ends it. Raises RedCheckError where it fails."""
    limits = ("--wait", "--duration", f"{seconds + 10 * _BACK:g}s", "-q", "-o", str(file))
    reader = subprocess.Popen([sys.executable, "-m", "foveate", "live", address, *limits])
    try:
        yield reader
        reader.terminate()
        code = reader.wait(_END)
    finally:
        reader.kill()
    if code not in (0, 143):
        raise RedCheckError(f"foveate live ended with {code}")


def _wait_for_more(reader: subprocess.Popen[bytes], file: Path, length: int) -> None:
    limit = time.monotonic() + _BACK
    while not file.exists() or file.stat().st_size <= length:
        if reader.poll() is not None:
            raise RedCheckError(f"foveate live ended with {reader.returncode}")
        if time.monotonic() > limit:
            raise RedCheckError(f"no record within {_BACK:g} s")
        time.sleep(0.05)


def _checked(file: Path) -> dict[str, int]:
    """Counts of the records. Raises RedCheckError where one is doubled or out of order."""
    count = discontinuities = 0
    last = -1, -1.0
    with file.open("rb") as lines:
        next(lines)  # the header
        for line in lines:
            record = json.loads(line)
            place = record["index"], record["time"]
            if place[0] <= last[0] or place[1] <= last[1]:
                raise RedCheckError(f"index or time does not grow: {place} after {last}")
            last = place
            count += 1
            discontinuities += record.get("keyframe_reason") == "discontinuity"
    return {"records": count, "discontinuities": discontinuities}


if __name__ == "__main__":
    run_module(soak)
