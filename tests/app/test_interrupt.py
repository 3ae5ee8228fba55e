"""All outputs at once, interrupted and killed hard: what was written stays valid."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from foveate.pipeline.sinks import read_shards

_BUDGET = 1728  # all cells of the clip: a shard of patches is full after 50 frames
_LONG_ENOUGH = 60  # frames; more than a shard, and several fragments of the overlay


class Outputs:
    """One file of each kind in a folder of their own, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines, self.npz = folder / "tokens.jsonl", folder / "tokens.npz"
        self.safetensors, self.overlay = folder / "tokens.safetensors", folder / "seen.mp4"

    @property
    def flags(self) -> list[str]:
        out = [str(path) for path in (self.lines, self.npz, self.safetensors)]
        return ["--budget", str(_BUDGET), "--out", *out, "--overlay", str(self.overlay)]

    def records(self) -> list[dict[str, Any]]:
        """The records on whole lines; every one of them must be valid."""
        header, *records, _ = self.lines.read_bytes().split(b"\n")
        assert json.loads(header)["config"]["budget"] == _BUDGET
        return [json.loads(line) for line in records]

    def sharded(self, path: Path) -> list[int]:
        """The frames in the shards of ``path``, whose arrays must fit together."""
        frames: list[int] = []
        for number, (header, arrays) in enumerate(read_shards(path)):
            assert header["shard"] == number
            assert len(arrays["patches"]) == len(arrays["x"]) == arrays["offsets"][-1]
            assert (np.diff(arrays["offsets"]) <= _BUDGET).all()
            frames += arrays["frame_index"].tolist()
        return frames

    def shown(self) -> list[float]:
        """The times of the overlay's pictures, all decoded."""
        with av.open(str(self.overlay)) as container:
            return [picture.time for picture in container.decode(video=0) if picture.time is not None]

    def strangers(self) -> list[str]:
        """Files that nobody asked for, shards aside."""
        known = {path.stem for path in (self.lines, self.npz, self.safetensors, self.overlay)}
        return [path.name for path in self.folder.iterdir() if path.stem.rpartition("-0")[0] not in known | {""}]


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    folder = tmp_path / "out"
    folder.mkdir()
    return Outputs(folder)


def wait_for_frames(outputs: Outputs, process: subprocess.Popen[bytes], count: int) -> None:
    """Until ``count`` records are written."""
    limit = time.monotonic() + 60
    while not outputs.lines.exists() or outputs.lines.read_bytes().count(b"\n") <= count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < limit
        time.sleep(0.05)


@pytest.mark.parametrize("count", [0, _LONG_ENOUGH])
def test_interrupted_all_outputs_end_at_the_same_frame(
    count: int, start: Any, long_clip: Path, outputs: Outputs
) -> None:
    process = start("run", str(long_clip), *outputs.flags)
    wait_for_frames(outputs, process, count)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5.0, err  # 2 seconds where the machine is not busy with other tests
    assert process.returncode == 130, err
    records = outputs.records()
    assert len(records) >= count
    assert err == b"interrupted after %d frames\n" % len(records)
    assert [record["index"] for record in records] == list(range(len(records)))
    # Sinks are written one after the other, frame by frame, so all of them hold the same frames.
    for path in (outputs.npz, outputs.safetensors):
        assert outputs.sharded(path) == list(range(len(records)))
    # 90 kHz ticks against 6 decimals.
    assert outputs.shown() == pytest.approx([record["time"] for record in records], abs=1e-4)
    assert outputs.lines.read_bytes().endswith(b"\n")
    assert outputs.strangers() == []


def test_killed_hard_all_outputs_are_whole_up_to_some_frame(start: Any, long_clip: Path, outputs: Outputs) -> None:
    process = start("run", str(long_clip), *outputs.flags)
    wait_for_frames(outputs, process, _LONG_ENOUGH)
    process.kill()
    process.wait()
    records = outputs.records()
    assert [record["index"] for record in records] == list(range(len(records)))
    for path in (outputs.npz, outputs.safetensors):
        frames = outputs.sharded(path)
        assert frames == list(range(len(frames)))
        assert _LONG_ENOUGH // 2 < len(frames) <= len(records)
    # The clip has 10 frames a second and the overlay a fragment per second; the last one, or two while the encoder
    # holds back its newest pictures, are lost.
    shown = outputs.shown()
    assert len(records) - 30 <= len(shown) <= len(records)
    assert shown == pytest.approx([record["time"] for record in records[: len(shown)]], abs=1e-4)
