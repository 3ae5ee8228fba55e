"""What the README states of settings, flags, records and the test command is true."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from pydantic import BaseModel

import foveate.app.main as app
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import open_sink
from foveate.pipeline.sinks.json_lines import record_of
from foveate.pipeline.sinks.shards import concatenated
from foveate.pipeline.stream import open_stream
from foveate.pipeline.vlm.server import Server
from tests.servers.chat import ChatServer

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {
    "query": ("red",),
    "query_ignored": ("car",),
    "embedding_age": 3,
    "text_age": 3,
    "debt": 3,
    "price": 64.0,
    "captured": 1.5,
    "arrived": 1.5,
    "latency": 0.5,
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
MODELS = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")


def table(name: str) -> list[list[str]]:
    """The rows of the table between the markers ``name``, heading and ruler left out."""
    text = README.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.split("\n") if line[:1] == "|"]
    assert len(rows) > 2
    assert {len(row) for row in rows[:1] + rows[2:]} == {len(rows[0])}
    return rows[2:]


def codes(cell: str) -> list[str]:
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", cell)


def defaults(model: BaseModel, above: str = "") -> Iterator[tuple[str, Any]]:
    """Key and default of every single setting, from the tree itself."""
    for name in type(model).model_fields:
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from defaults(value, f"{above}{name}.")
        else:
            yield above + name, list(value) if isinstance(value, tuple) else value


def test_every_setting_stands_in_the_table_with_its_default() -> None:
    stated = {}
    for key, _, default, meaning in table("settings"):
        stated[codes(key)[0]] = None if default == "none" else tomllib.loads(f"it = {codes(default)[0]}")["it"]
        assert meaning
    assert list(stated.items()) == list(defaults(Settings()))


def test_every_flag_exists_and_none_is_left_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for command in ("run", "live"):
        assert app.main([command, "--help"]) == 0
    known = set(re.findall(r"(?<![\w-])--?[a-z][a-z0-9]*(?:[.-][a-z][a-z0-9]*)*", capsys.readouterr().out))
    rows = table("settings")
    assert all(codes(flag)[0].startswith("--") for _, flag, _, _ in rows)
    stated = {code for _, flag, _, meaning in rows for code in codes(flag) + codes(meaning) if code[0] == "-"}
    for command in ("run", "live"):
        stated |= set(codes(README.split(f"Further flags of `foveate {command}`:")[1].split("\n\n")[0])) - {
            "foveate run"
        }
    assert stated <= known
    longer = {"--" + codes(key)[0].replace("_", "-") for key, *_ in rows}  # of flags with a short spelling as well
    assert known - stated <= longer | {
        *("-h", "--help", "--no-patches", "--no-device-patches", "--no-wait", "--live.no-wait", "--no-keep-embeddings"),
        "--no-query-lenient",
    }


@pytest.fixture
def selections() -> list[Selection]:
    clip = str(ROOT / "sample_videos" / "pedestrians.mp4")
    with open_stream(clip, source={"frames": 2}, patches=True, budget=20) as stream:
        return list(stream)


def test_the_fields_are_those_of_a_record(selections: list[Selection]) -> None:
    keyframe, plain = selections
    rows = table("fields")
    everything = [codes(field)[0] for field, _, _ in rows]
    always = [codes(field)[0] for field, _, _ in rows if field[0] == "`"]
    assert list(record_of(plain, (plain.width, plain.height))) == always
    asked = dataclasses.replace(keyframe, participation=np.zeros(len(keyframe), np.float32), extras=EXTRAS)
    assert list(record_of(asked, (1, 1))) == everything


def test_the_types_are_those_of_a_record(selections: list[Selection]) -> None:
    keyframe = dataclasses.replace(selections[0], participation=np.zeros(len(selections[0]), np.float32))
    keyframe = dataclasses.replace(keyframe, extras=EXTRAS)
    record = json.loads(orjson.dumps(record_of(keyframe, (1, 1)), option=orjson.OPT_SERIALIZE_NUMPY))
    kinds = {"integer": int, "number": float, "boolean": bool, "string": str, "list": list}
    for field, kind, _ in table("fields"):
        value = record[codes(field)[0]]
        if kind.endswith("s"):
            assert len(value) == len(keyframe), field
            value = value[0]
        assert type(value) is kinds[kind.removesuffix("s")], field


def test_the_header_and_the_arrays_are_named(selections: list[Selection], tmp_path: Path) -> None:
    output = README.split("## Output")[1].split("## Settings")[0]
    described = set(codes(output.replace("`offsets[i]`", "`offsets`")))
    file = tmp_path / "tokens.jsonl"
    clip = str(ROOT / "sample_videos" / "pedestrians.mp4")
    with open_stream(clip, source={"frames": 1}, sinks=[open_sink(str(file))]) as stream:
        list(stream)
    assert json.loads(file.read_text().splitlines()[0]).keys() <= described
    assert concatenated(selections).keys() <= described


def test_the_test_command_is_marked_as_ci_takes_it() -> None:
    block = re.search(r"^<!-- test -->\n```sh\n(.+?)\n```$", README, re.MULTILINE | re.DOTALL)
    assert block is not None
    assert "make test" in block[1]
    assert README.count("<!-- test -->") == 1


def test_the_files_that_it_links_to_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert "sample_videos/overlay.jpg" in links
    assert all((ROOT / link).exists() for link in links)
    assert (ROOT / "sample_videos" / "overlay.jpg").stat().st_size < 200_000


def test_the_example_runs() -> None:
    example = README.split("```python\n")[1].split("```")[0]
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    for stated, used in (("clip.mp4", str(clip)), ("budget=256", 'budget=256, source={"frames": 3}')):
        assert stated in example
        example = example.replace(stated, used)
    exec(example, {"model": lambda patches, coords, valid, grid: np.ones(valid.sum())})


def code_with(text: str) -> str:
    """The one example in Python that holds ``text``, on a few frames of a sample clip."""
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", README + MODELS, re.DOTALL) if text in code]
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    return example.replace('"clip.mp4"', f'"{clip}", source={{"frames": 3}}')


def test_the_example_of_painting_runs() -> None:
    names: dict[str, Any] = {"open_stream": open_stream}
    exec(code_with("paint(onto=seen)"), names)
    assert {names[name].shape for name in ("frame", "seen", "drawn")} == {(576, 768, 3)}


def test_the_example_of_tokens_for_vllm_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def answer(_: Server, content: Any, *, max_tokens: int = 0) -> list[str]:
        sent.extend(content)
        return ["nobody"]

    monkeypatch.setattr(Server, "stream_content", answer)
    names: dict[str, Any] = {}
    exec(code_with("stream_content(").replace(', source={"fps": 1.0}', ""), names)
    assert [part["type"] for part in sent] == ["text", "image_embeds"] * 3 + ["text"]
    assert names["asked"]["messages"][0]["content"][:-1] == sent[:-1]


def test_the_example_of_own_frames_runs() -> None:
    names: dict[str, Any] = {
        "open_stream": open_stream,
        "frames": [np.full((32, 48, 3), 9 * i, np.uint8) for i in range(4)],
    }
    exec(code_with("stream.push(frame)"), names)
    assert names["selection"].index == 3
    assert [selection.time for selection in names["selections"]] == [0.0, 1 / 30, 2 / 30, 3 / 30]


def test_the_example_of_lessons_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example = next(code for code in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "Lessons" in code)
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    assert '"clip.mp4", maps' in example
    example = example.replace('"clip.mp4", maps', f'"{clip}", source={{"frames": 8}}, maps')
    exec(example, {"model": lambda patches, coords, valid, grid: (patches.std(axis=1) / 128).clip(0, 1)})
    command = re.search(r"`foveate (fit-scorer [^`]+)`", README)
    assert command is not None
    assert app.main(command[1].split()) == 0
    scored = ["--score.scorer", "linear", "--score.weights", "mine.toml", "--frames", "2", "-o", "t.jsonl", "-q"]
    assert app.main(["run", str(clip), *scored]) == 0
    header, *records = (tmp_path / "t.jsonl").read_text().splitlines()
    assert json.loads(header)["config"]["score"]["scorer"] == "linear"
    assert len(records) == 2


def test_the_example_of_a_server_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    example = code_with("pictures_of(each")
    example = example.replace(', source={"frames": 3}, query', ', source={"every": 20, "frames": 3}, query')
    names: dict[str, Any] = {"open_stream": open_stream}
    with ChatServer() as server:
        exec(example.replace("http://localhost:8000", server.address), names)
    (request,) = server.asked
    assert [text for text in request["texts"] if "seconds" in text] == [
        "<0.0 seconds>",
        "<2.0 seconds>",
        "<4.0 seconds>",
    ]
    assert len(request["pictures"]) > 3
