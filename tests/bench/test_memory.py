"""Peak memory does not depend on the length of the file."""

import json
from pathlib import Path

import av
import pytest

from foveate.bench.memory import main, repeat


def test_packets_are_repeated_at_the_right_times(tiny_clip: Path, tmp_path: Path) -> None:
    target = tmp_path / "long.mp4"
    assert repeat(tiny_clip, target, 30) == 30
    with av.open(str(target)) as container:
        times = [frame.time for frame in container.decode(video=0)]
    assert times == pytest.approx([index / 25 for index in range(30)])


@pytest.mark.slow
def test_memory_is_the_same_for_a_file_six_times_as_long(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"
    sizes = ["--short", "10", "--long", "60", "--width", "320", "--height", "192"]
    assert main([*sizes, "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert [case["frames"] for case in record["cases"]] == [250, 1500]
    assert record["ratio"] <= 1.1
    assert record["cases"][0]["peak_mib"] > 30  # of NumPy and OpenCV alone
