"""Peak memory of ``foveate run`` on a short and on a long file, which should be the same:

python -m foveate.bench.cases.memory --out memory.json
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray
from tyro.conf import arg

from foveate.bench.case import RedCheckError
from foveate.bench.clips.encoding import FAST, encode, grey_frame, looped
from foveate.bench.entry import Out, run_module
from foveate.bench.records.table import say
from foveate.bench.records.writing import hand_out, new_record
from foveate.pipeline.errors import SettingsError

MOST: Final = 1.1  # the long file's peak memory over the short one's
_RATE = Fraction(25)
_LOOP = 10  # seconds that are encoded; longer files repeat their packets
_CHILD: Final = """
import re, sys
from foveate.app.main import main
code = main(["run", sys.argv[1], "--out", sys.argv[2], "--quiet"])
with open("/proc/self/status") as status:
    print(re.search(r"VmHWM:\\s*(\\d+) kB", status.read())[1])
sys.exit(code)
"""
"""Runs the command in-process, then prints the peak of its resident memory in KiB. The parent's own memory, which
a child's ``ru_maxrss`` may contain, is not in it. Linux only."""


def memory(
    out: Out = None,
    short: Annotated[int, arg(metavar="SECONDS", help="Length of the short file, a multiple of 10.")] = 60,
    long: Annotated[int, arg(metavar="SECONDS", help="Length of the long file, a multiple of 10.")] = 600,
    width: Annotated[int, arg(metavar="N", help="Pixels, even.")] = 854,
    height: Annotated[int, arg(metavar="N", help="Pixels, even.")] = 480,
) -> None:
    """Measure the peak memory of ``foveate run`` on a short and a long file of the same kind."""
    _check_lengths(short=short, long=long)
    record = new_record("memory", out, most=MOST)
    with tempfile.TemporaryDirectory(prefix="foveate-bench-") as folder:
        loop = Path(folder) / "loop.mp4"
        encode(loop, map(grey_frame, moving_pattern(width, height, int(_LOOP * _RATE))), _RATE, FAST)
        for seconds in (short, long):
            say(f"running {seconds} s of {width}x{height}")
            record["cases"].append(measure(loop, seconds))
    record["ratio"] = record["cases"][1]["peak_mib"] / record["cases"][0]["peak_mib"]
    for case in record["cases"]:
        say(f"{case['name']}: {case['frames']} frames, peak {case['peak_mib']:.1f} MiB")
    say(f"long / short {record['ratio']:.3f}, may be {MOST}")
    hand_out(record, out)
    if record["ratio"] > MOST:
        raise RedCheckError(f"memory grows with the file: {record['ratio']:.3f} times as much, may be {MOST}")


def _check_lengths(**lengths: int) -> None:
    for flag, seconds in lengths.items():
        if seconds < _LOOP or seconds % _LOOP:
            raise SettingsError(f"--{flag} must be a multiple of {_LOOP}, got {seconds}")


def measure(loop: Path, seconds: int) -> dict[str, Any]:
    """Run ``seconds``, a multiple of 10, of ``loop``, which lasts 10. Raises RedCheckError where the run goes wrong."""
    clip = loop.with_name(f"{seconds}s.mp4")
    frames = looped(loop, clip, seconds // _LOOP)
    tokens = loop.with_name(f"{seconds}s.jsonl")
    peak = peak_memory(clip, tokens)
    with tokens.open("rb") as file:
        lines = sum(1 for _ in file)
    if lines != frames + 1:
        raise RedCheckError(f"{frames} frames should give as many lines and a header, got {lines}")
    return {"name": f"{seconds} s", "seconds": seconds, "frames": frames, "peak_mib": peak / 2**20}


def peak_memory(clip: Path, tokens: Path) -> int:
    """Bytes of resident memory that ``foveate run`` took at most. Raises RedCheckError where it fails."""
    command = [sys.executable, "-c", _CHILD, str(clip), str(tokens)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RedCheckError(f"foveate run ended with {done.returncode}: {done.stderr.strip()}")
    return int(done.stdout) * 1024


def moving_pattern(width: int, height: int, frames: int) -> Iterator[NDArray[np.uint8]]:
    """Luma uint8[height, width]: stripes that move all the time, and a bright block that runs across."""
    stripes = np.arange(width + frames) % 64 * 3 + np.arange(height)[:, None] % 48
    side = min(width, height) // 4
    for index in range(frames):
        luma = stripes[:, index : index + width].astype(np.uint8)
        left = index * 4 % (width - side)
        luma[height // 2 : height // 2 + side, left : left + side] = 250
        yield luma


if __name__ == "__main__":
    run_module(memory)
