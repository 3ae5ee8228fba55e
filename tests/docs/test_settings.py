"""docs/settings.md is as the code writes it, and names every setting and flag."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import foveate.app.main as app
from foveate.app.settings_page import main, settings_page
from foveate.pipeline.settings import Settings
from tests.docs.pages import codes, page, tables

ROWS = tables(page("settings"), "settings")


def defaults(model: BaseModel, above: str = "") -> Iterator[tuple[str, Any]]:
    """Key and default of every single setting, from the tree itself."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from defaults(value, f"{above}{name}.")
        else:
            yield above + name, list(value) if isinstance(value, tuple) else value


def test_the_page_is_current() -> None:
    assert page("settings") == settings_page(), "python -m foveate.app.settings_page docs/settings.md"


def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "page.md")]) == 0
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == page("settings")
    assert main([]) == 2
    assert "usage: " in capsys.readouterr().err


def test_every_setting_stands_in_the_table_with_its_default() -> None:
    stated = {}
    for key, _, default, values, meaning in ROWS:
        stated[codes(key)[0]] = None if default == "none" else tomllib.loads(f"it = {codes(default)[0]}")["it"]
        assert values
        assert meaning
    assert list(stated.items()) == list(defaults(Settings()))


def test_the_values_of_a_few_settings() -> None:
    stated = {codes(key)[0]: values for key, _, _, values, _ in ROWS}
    assert stated["budget"] == "integer, 1 to 1,000,000"
    assert stated["allocation.merge"] == "`1`, `2`, `3`"
    assert stated["change.cut_share"] == "number, > 0, ≤ 1"
    assert stated["source.start"] == "seconds, or a time such as `1:02:03.5`"


def test_every_flag_exists_and_none_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("run", "live"):
        assert app.main([command, "--help"]) == 0
    known = set(re.findall(r"(?<![\w\"-])--?[a-z][a-z0-9]*(?:[.-][a-z][a-z0-9]*)*", capsys.readouterr().out))
    assert all(codes(flag)[0].startswith("--") for _, flag, *_ in ROWS)
    stated = {code for _, flag, *_ in ROWS for code in codes(flag)}
    for command, name in (("run", "command-line"), ("live", "live")):
        listed = page(name).split(f"Further flags of `foveate {command}`:")[1].split("\n\n")[0]
        stated |= {code for code in codes(listed) if code[0] == "-"}
    assert stated <= known
    longer = {"--" + codes(key)[0].replace("_", "-") for key, *_ in ROWS}  # of flags with a short spelling as well
    assert known - stated <= longer | {
        *("-h", "--help", "--no-patches", "--no-device-patches", "--no-wait", "--live.no-wait", "--no-keep-embeddings"),
        *("--no-query-lenient", "--max-frames"),
    }
