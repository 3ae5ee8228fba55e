"""The benchmark of corpora: it makes them, compares their bytes, and refuses to report where they differ."""

import json
from pathlib import Path

import pytest

from foveate.bench.case import RedCheckError
from foveate.bench.cases.corpus import check_equal, corpus


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.bench.cases.corpus.MOST", 60.0)  # speed is no test's business
    corpus(str(tmp_path / "record.json"), clips=2, frames=3, workers=2, repeats=1)
    record = json.loads((tmp_path / "record.json").read_text())
    assert [case["workers"] for case in record["cases"]] == [0, 2]
    assert [len(case["samples_s"]) for case in record["cases"]] == [1, 1]
    assert record["extra_s"] == pytest.approx(record["cases"][1]["samples_s"][0] - record["cases"][0]["samples_s"][0])


def test_other_bytes_are_no_result(tmp_path: Path) -> None:
    for name, text in (("one", "a"), ("two", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
    with pytest.raises(RedCheckError, match="the corpora differ"):
        check_equal(tmp_path / "one", tmp_path / "two")
