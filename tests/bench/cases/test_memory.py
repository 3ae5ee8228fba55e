"""Peak memory does not depend on the length of the file."""

import json
from pathlib import Path

import pytest

from foveate.bench.cases.memory import memory
from foveate.bench.entry import exit_code


@pytest.mark.slow
def test_memory_is_the_same_for_a_file_six_times_as_long(tmp_path: Path) -> None:
    out = tmp_path / "memory.json"
    sizes = ["--short", "10", "--long", "60", "--width", "320", "--height", "192"]
    assert exit_code(memory, [*sizes, "--out", str(out)]) == 0
    record = json.loads(out.read_text())
    assert [case["frames"] for case in record["cases"]] == [250, 1500]
    assert record["ratio"] <= 1.1
    assert record["cases"][0]["peak_mib"] > 30  # of NumPy and OpenCV alone
