"""The measure of what queries cost: it checks before it times."""

import json

import pytest

from foveate.bench.case import RedCheckError
from foveate.bench.cases import relevance


def test_the_record_holds_every_sample(monkeypatch, tmp_path):
    monkeypatch.setattr(relevance, "CELLS", (9,))
    monkeypatch.setattr(relevance, "RUNS", 3)
    relevance.measure(str(tmp_path / "out.json"))
    cases = json.loads((tmp_path / "out.json").read_text())["cases"]
    assert [(case["cells"], case["queries"]) for case in cases] == [(9, 1), (9, 2), (9, 10), (9, 100)]
    assert all(len(case["milliseconds"]) == 3 and min(case["milliseconds"]) > 0 for case in cases)


def test_a_wrong_relevance_is_not_timed(monkeypatch):
    monkeypatch.setattr(relevance, "relevance", lambda terms, inputs: inputs[: len(terms.phrases)] * 0 - 1)
    with pytest.raises(RedCheckError, match="wrong"):
        relevance.timed(9, 2)
