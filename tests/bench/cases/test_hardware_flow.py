"""Without the engine's library, the record says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from foveate.bench.cases import hardware_flow as case
from foveate.bench.gpu import optical_flow


def test_a_missing_library_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Held:
        name, context_handle = "a card", 0

        def __enter__(self) -> Held:
            return self

        def __exit__(self, *_: object) -> None: ...

        def stream(self) -> None: ...

    monkeypatch.setattr(optical_flow, "LIBRARY", "libno-such-library.so.1")
    monkeypatch.setattr(case, "Device", Held)
    case.hardware_flow(out=str(tmp_path / "a.json"))
    told: dict[str, Any] = json.loads((tmp_path / "a.json").read_text())
    assert (told["engine"], told["cases"]) == (False, [])
    assert told["why"] == "the driver's library libno-such-library.so.1 is missing or does not load"
