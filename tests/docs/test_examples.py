"""The Python examples of the pages run, as they stand there, on a few frames of a sample clip."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import foveate.app.main as app
from foveate.pipeline.stream import open_stream
from foveate.pipeline.vlm.server import Server
from tests.docs.pages import PAGES, ROOT, blocks, page
from tests.servers.chat import ChatServer

EXAMPLES = [code for text in PAGES.values() for code in blocks("python", text)]


def code_with(text: str) -> str:
    """The one example that holds ``text``, on a few frames of a sample clip."""
    (example,) = [code for code in EXAMPLES if text in code]
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    return example.replace('"clip.mp4"', f'"{clip}", source={{"frames": 3}}')


def test_the_example_of_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    exec(code_with("print(selection.time, selection.x"), {})
    said = capsys.readouterr().out
    assert said.count(", 16, 16, 3)") == 3


def test_the_example_of_naflex_runs() -> None:
    exec(code_with("selection.naflex(256)"), {"model": lambda patches, coords, valid, grid: np.ones(valid.sum())})


def test_the_example_of_a_data_loader_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    clips = [str(ROOT / "sample_videos" / name) for name in ("bunny.mp4", "tree.mp4")]  # 5.3 and 29.5 s
    exec(code_with("IterableDataset").replace("num_workers=2", "num_workers=0"), {"videos": clips})
    said = capsys.readouterr().out.splitlines()
    assert said[:4] == 4 * ["torch.Size([8, 256, 768])"]
    assert len(said) == 5


def test_the_example_of_painting_runs() -> None:
    names: dict[str, Any] = {"open_stream": open_stream}
    exec(code_with("paint(onto=seen)"), names)
    assert {names[name].shape for name in ("frame", "seen", "drawn")} == {(576, 768, 3)}


def test_the_example_of_regions_runs() -> None:
    names: dict[str, Any] = {}
    exec(code_with("tokens_in_regions(picture"), names)
    counts = np.bincount(names["selection"].region, minlength=len(names["boxes"]))
    assert len(names["boxes"]) == len(counts)
    assert (counts > 0).all()
    assert (counts <= 100).all()
    assert len(names["patches"]) == counts[-1]


def test_the_example_of_learned_tokens_runs() -> None:
    torch = pytest.importorskip("torch")
    names: dict[str, Any] = {}
    exec(code_with("sample_patches("), names)
    assert names["same"].numpy() == pytest.approx(names["selection"].patches.astype(float), abs=0.53)
    assert all(torch.isfinite(place.grad).all() and place.grad.any() for place in names["places"])


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


def test_the_examples_of_corpora_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    monkeypatch.chdir(tmp_path)
    assert app.main(["corpus", str(clip), "--out", "tokens", "--frames", "2", "--workers", "0", "-q"]) == 0
    names: dict[str, Any] = {}
    exec(code_with("read_table("), names)
    assert names["table"]["video"].to_pylist() == ["pedestrians.mp4"] * 2
    assert capsys.readouterr().out.startswith("pedestrians.mp4 at 0.00 s: 273 tokens; centre and side of the first: (")
    (example,) = [code for code in EXAMPLES if "FrameRows(" in code]
    exec(example.replace("(budget=100)", '(budget=100, source={"frames": 2})').replace("clip.mp4", str(clip)), names)
    assert [row["index"] for row in names["rows"]] == [0, 1]


def test_the_example_of_own_frames_runs() -> None:
    names: dict[str, Any] = {
        "open_stream": open_stream,
        "frames": [np.full((32, 48, 3), 9 * i, np.uint8) for i in range(4)],
    }
    exec(code_with("stream.push(frame)"), names)
    assert names["selection"].index == 3
    assert [selection.time for selection in names["selections"]] == [0.0, 1 / 30, 2 / 30, 3 / 30]


def test_the_example_of_training_data_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = [code for code in EXAMPLES if "TrainingData" in code]
    clip = ROOT / "sample_videos" / "pedestrians.mp4"
    assert '"clip.mp4", maps' in example
    example = example.replace('"clip.mp4", maps', f'"{clip}", source={{"frames": 8}}, maps')
    exec(example, {"model": lambda patches, coords, valid, grid: (patches.std(axis=1) / 128).clip(0, 1)})
    command = re.search(r"`foveate (fit-scorer [^`]+)`", page("strategies"))
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
