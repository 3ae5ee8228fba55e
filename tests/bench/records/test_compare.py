"""``foveate bench compare``: what is better, worse or noise, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from foveate.app.main import main
from foveate.bench.records.compare import compare_records

Write = Callable[[str, Any], str]

MACHINE = {"processor": "a processor", "cores": 2}


def quality(*frames: float, sha: str = "aa", name: str = "one") -> dict[str, Any]:
    """A record with one case: PSNR of each frame."""
    mean = sum(frames) / len(frames)
    case = {"name": name, "sha256": sha, "psnr_luma": mean, "samples": {"psnr_luma": list(frames)}}
    return {"command": "quality", "machine": MACHINE, "commit": "0123456789abcdef", "dirty": False, "cases": [case]}


def timed(*times: float) -> dict[str, Any]:
    """A record with one case: CPU milliseconds of each turn."""
    case = {"name": "one", "cpu_ms": sum(times) / len(times), "samples": {"cpu_ms": list(times)}}
    return {"command": "bench", "suite": "speed", "machine": MACHINE, "commit": None, "dirty": None, "cases": [case]}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a record, and gives its name."""

    def to(name: str, record: Any) -> str:
        (tmp_path / name).write_text(record if isinstance(record, str) else json.dumps(record))
        return str(tmp_path / name)

    return to


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        (quality(30, 31, 32), quality(31, 32, 33), "better"),
        (quality(30, 31, 32), quality(29, 30, 31), "worse"),
        (quality(30, 31, 32), quality(30, 31, 32), "same"),
        (quality(30, 31, 32), quality(33, 31, 30), "unsure"),  # +3, 0, -2: the interval holds 0
        (timed(1.0, 1.01, 0.99), timed(2.0, 2.02, 1.98), "worse"),
        (timed(1.0, 1.01, 0.99), timed(0.5, 0.51, 0.49), "better"),
        (timed(1.0, 2.0, 3.0), timed(1.1, 2.1, 3.1), "unsure"),
        (timed(1.0), timed(2.0), "unsure"),  # one sample has no noise to compare with
    ],
)
def test_verdicts(before: dict[str, Any], after: dict[str, Any], verdict: str) -> None:
    (found,) = compare_records(before, after).differences
    assert found.verdict == verdict


def test_times_of_another_machine_count_for_nothing() -> None:
    other = {**timed(2.0, 2.0), "machine": {"processor": "another", "cores": 2}}
    (found,) = compare_records(timed(1.0, 1.0), other).differences
    assert (found.verdict, found.change) == ("elsewhere", 2.0)


def test_the_exit_code_and_the_table(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = write("a.json", quality(30, 31, 32)), write("b.json", quality(29, 30, 31))
    assert main(["bench", "compare", before, after]) == 1
    told = capsys.readouterr().out
    assert "31.00 dB" in told
    assert "30.00 dB" in told
    assert "-1.000 to -1.000" in told
    assert "figures: 0 better, 1 worse, 0 unsure, 0 same" in told
    assert main(["bench", "compare", after, before]) == 0
    assert main(["bench", "compare", before, before]) == 0
    assert "PSNR" not in capsys.readouterr().out.splitlines()[-1]
    assert main(["bench", "compare", before, before, "--all"]) == 0
    assert "PSNR, mean" in capsys.readouterr().out


def test_cases_of_one_record_are_named(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = quality(30, 31), quality(30, 31)
    one["cases"] += [{"name": "gone"}, quality(1, 2, name="moved")["cases"][0]]
    two["cases"] += [{"name": "new"}, quality(1, 2, name="moved", sha="bb")["cases"][0]]
    assert main(["bench", "compare", write("a.json", one), write("b.json", two)]) == 0
    told = capsys.readouterr().out
    assert "had another input: moved" in told
    assert "only before: gone" in told
    assert "only after: new" in told


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no JSON", "is no record of foveate bench: it is not JSON"),
        ("[1]", "is no record of foveate bench with cases"),
        ('{"command": "bench", "machine": {}, "cases": [7]}', "is no record of foveate bench with cases"),
        ("[" * 100_000, "is no record of foveate bench: it is not JSON"),
    ],
)
def test_another_file_is_no_record(text: str, reason: str, write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    other = write("other.json", text)
    assert main(["bench", "compare", other, write("a.json", quality(1, 2))]) == 1
    assert capsys.readouterr().err == f"foveate: error: {other} {reason}\n"


def test_what_cannot_be_compared(write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held, other = write("a.json", quality(1, 2)), write("b.json", timed(1, 2))
    apart = write("c.json", quality(1, 2, name="two"))
    for after, code, part in (
        (other, 2, "of speed suite; name two of the same"),
        (apart, 2, "no case in common"),
        (str(tmp_path / "gone.json"), 1, "cannot read"),
        (str(tmp_path), 1, "cannot read"),
    ):
        assert main(["bench", "compare", held, after]) == code
        told = capsys.readouterr()
        assert (told.out, told.err.count("\n")) == ("", 1)
        assert part in told.err
