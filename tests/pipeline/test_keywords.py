"""The keywords of open_stream are those of the settings, and a type checker finds the wrong ones."""

import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from pydantic import BaseModel

from foveate.pipeline import keywords
from foveate.pipeline.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def alternatives(kind: Any) -> set[Any]:
    """The members of a union, or the type alone; what only annotates a type is left out."""
    if get_origin(kind) is Annotated:
        return alternatives(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return set().union(*map(alternatives, get_args(kind)))
    return {kind}


def pairs(model: type[BaseModel], typed: Any) -> list[tuple[type[BaseModel], Any]]:
    """Each group of settings and its keywords."""
    found = [(model, typed)]
    for name, kind in get_type_hints(typed).items():
        annotation = model.model_fields[name].annotation
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            group = next(each for each in alternatives(kind) if each is not annotation)
            found += pairs(annotation, group)
    return found


def test_every_setting_is_a_keyword_of_its_type() -> None:
    groups = pairs(Settings, keywords.SettingsKeywords)
    assert len(groups) == 1 + sum(isinstance(value, BaseModel) for value in dict(Settings()).values())
    for model, typed in groups:
        hints = get_type_hints(typed)
        assert list(hints) == list(model.model_fields), typed.__name__
        assert not typed.__required_keys__
        for name, field in model.model_fields.items():
            assert alternatives(field.annotation) <= alternatives(hints[name]), f"{typed.__name__}.{name}"


RIGHT = """
from foveate.pipeline import open_stream
from foveate.pipeline.settings import AllocationSettings, Settings

open_stream("a.mp4", budget=100, patches=True, query=["red"], allocation={"memory": "stream", "merge": 2})
open_stream("a.mp4", Settings(), source={"frames": 3, "rate": 10}, allocation=AllocationSettings())
"""
WRONG = {
    'open_stream("a.mp4", bugdet=100)': 'Unexpected keyword argument "bugdet" for "open_stream"',
    'open_stream("a.mp4", budget="many")': 'Argument "budget" to "open_stream" has incompatible type "str"',
    'open_stream("a.mp4", query="red")': 'Argument "query" to "open_stream" has incompatible type "str"',
    'open_stream("a.mp4", engine="gpu")': 'Argument "engine" to "open_stream" has incompatible type',
    'open_stream("a.mp4", allocation={"memroy": "stream"})': 'Argument "allocation" to "open_stream"',
    'open_stream("a.mp4", allocation={"memory": "streams"})': 'Argument "allocation" to "open_stream"',
}


def test_a_type_checker_finds_wrong_names_and_types(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    rooms = tmp_path / "types" / "foveate"
    rooms.mkdir(parents=True)
    for room in ("configs", "cuda", "pipeline"):
        (rooms / room).symlink_to(ROOT / room)
    script = tmp_path / "caller.py"
    script.write_text(RIGHT + "\n".join(WRONG) + "\n")
    configuration = tmp_path / "mypy.ini"
    configuration.write_text(
        f"[mypy]\nmypy_path = {tmp_path / 'types'}\nnamespace_packages = True\nexplicit_package_bases = True\n"
        "strict = True\nfollow_imports = silent\nplugins = pydantic.mypy\nignore_missing_imports = True\n"
        f"cache_dir = {tmp_path / 'cache'}\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", str(configuration), str(script)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    lines = [line for line in told.stdout.splitlines() if ": error:" in line]
    first = RIGHT.count("\n") + 1
    for number, (call, message) in enumerate(WRONG.items(), first):
        mine = [line for line in lines if f"caller.py:{number}:" in line]
        assert mine, f"{call} passes: {told.stdout}{told.stderr}"
        assert any(message in line for line in mine), mine
    assert all(int(line.split(":")[1]) >= first for line in lines), lines
