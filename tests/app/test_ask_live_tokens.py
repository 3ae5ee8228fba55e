"""``foveate ask`` with stream memory: what enters the model is what still shows, found here by painting each pixel."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from foveate.app.ask import command
from foveate.app.ask.arguments import ask
from foveate.app.console import Console
from foveate.app.main import main
from foveate.pipeline import open_stream
from tests.pipeline.test_vlm_context import CLIPS, Owners

torch = pytest.importorskip("torch", reason="needs the extra vlm")
transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra vlm")
pytest.importorskip("torchvision", reason="needs the extra vlm")

from tests.models.folder import model_folder  # noqa: E402
from tests.models.vision_language import IMAGE  # noqa: E402

STREAM: dict[str, Any] = {"budget": 4 * 68, "allocation": {"memory": "stream", "merge": 2}}


@dataclass
class Turn:
    """What ``generate`` was given."""

    groups: int  # of pictures
    length: int  # of the prompt
    read: int  # of it, not in the cache yet


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    families = ("qwen2_5_vl", "qwen3_5", "gemma4", "gemma4_e")
    return {family: model_folder(tmp_path_factory.mktemp(family), family) for family in families}


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> list[Turn]:
    """What models are asked from here on."""
    seen: list[Turn] = []
    generate = transformers.GenerationMixin.generate

    def noting(self: Any, **inputs: Any) -> Any:
        ids = inputs["input_ids"]
        cache = inputs.get("cache", inputs.get("past_key_values"))
        seen.append(Turn(int((ids == IMAGE).sum()), ids.shape[1], ids.shape[1] - cache.get_seq_length()))
        return generate(self, **inputs)

    monkeypatch.setattr(transformers.GenerationMixin, "generate", noting)
    return seen


def groups_of(width: int, height: int) -> int:
    """Groups of 2 x 2 cells of 16 pixels in a picture."""
    return -(-width // 32) * -(-height // 32)


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("question", ["Who is moving?", "What is it?"])
def test_of_a_file_the_newest_token_of_each_cell_is_given(
    clip: str, question: str, folders: dict[str, Path], turns: list[Turn], samples: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = str(samples / f"{clip}.mp4")
    flags = ["--model", str(folders["qwen2_5_vl"]), "--fps", "4", "--max-tokens", "3"]
    assert main(["ask", path, question, *flags]) == 0
    owners, cells, whole, frames = Owners(2), 0, 0, 0
    query = ["moving"] if "moving" in question else []
    with open_stream(path, query=query, source={"fps": 4.0}, **STREAM) as stream:
        for selection in stream:
            owners.add(selection)
            cells = groups_of(selection.width, selection.height)
            whole, frames = whole + cells, frames + 1
    (turn,) = turns
    assert turn.groups == len(owners.live)
    assert 0 < turn.groups <= cells
    said = capsys.readouterr().err.splitlines()[1]
    told = rf"{turn.groups:,} of {whole:,} language-model tokens \(\d+\.\d%\)"
    visible = f"what is still visible of {owners.given:,} selected"
    assert re.fullmatch(rf"{frames} frames, 0\.0 to \d+\.\d s: {told}, {visible}", said)


@pytest.mark.parametrize("family", ["gemma4", "gemma4_e"])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_gemma_4_is_given_groups_of_nine(
    family: str, memory: str, folders: dict[str, Path], turns: list[Turn], samples: Path, capsys: Any
) -> None:
    """Of 16 x 12 groups of 48 pixels, each a token of the language model."""
    path = str(samples / "pedestrians.mp4")
    flags = ["--model", str(folders[family]), "--memory", memory, "--frames", "3", "--max-tokens", "3"]
    assert main(["ask", path, "What is it?", *flags]) == 0
    allocation = {"merge": 3, "memory": memory}
    owners = Owners(3)
    with open_stream(path, budget=9 * 68, allocation=allocation, source={"fps": 1.0, "frames": 3}) as stream:
        for selection in stream:
            owners.add(selection)
    (turn,) = turns
    assert turn.groups == (owners.given if memory == "frame" else len(owners.live))
    told = capsys.readouterr().err.splitlines()[1]
    assert "of 576 language-model tokens" in told


def test_the_readme_shows_what_it_says(
    folders: dict[str, Path], samples: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its example, but for the words, which depend on how sums are rounded."""
    asked = [str(samples / "pedestrians.mp4"), "Who is moving on the left?", "--model", str(folders["qwen2_5_vl"])]
    assert main(["ask", *asked, "--max-tokens", "24"]) == 0
    shown = (samples.parent / "docs" / "ask.md").read_text(encoding="utf-8").split("and `--max-tokens 24`:\n\n```\n")[1]
    assert shown.startswith(capsys.readouterr().err)


@pytest.mark.parametrize(("fps", "limit"), [(25, 500), (2, 3000)])
def test_a_long_file_stays_within_the_limit(
    fps: int, limit: int, folders: dict[str, Path], turns: list[Turn], samples: Path, capsys: Any
) -> None:
    flags = ["--fps", str(fps), "--limit", str(limit), "--max-tokens", "20", "--memory"]
    for memory in ("stream", "frame"):
        asked = [str(samples / "pedestrians.mp4"), "Who?", "--model", str(folders["qwen2_5_vl"]), *flags, memory]
        assert main(["ask", *asked, "--frames", "40"]) == 0
    assert all(limit / 6 < turn.length <= limit - 20 for turn in turns)
    stream, frame = (line for line in capsys.readouterr().err.splitlines() if "frames" in line)
    assert stream.endswith("; tokens that cover little left out by --limit") == (limit == 500)
    assert frame.endswith("; earlier frames left out by --limit")


def test_with_frame_memory_each_frame_is_given_whole(
    folders: dict[str, Path], turns: list[Turn], samples: Path
) -> None:
    path = str(samples / "pedestrians.mp4")
    flags = ["--model", str(folders["qwen2_5_vl"]), "--memory", "frame", "--frames", "5", "--max-tokens", "3"]
    assert main(["ask", path, "What is it?", *flags]) == 0
    with open_stream(path, budget=4 * 68, allocation={"merge": 2}, source={"fps": 1.0, "frames": 5}) as stream:
        assert turns[0].groups == sum(len(selection) // 4 for selection in stream)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_5"])
@pytest.mark.parametrize("limit", [None, 700])
def test_a_live_source_within_a_set_number_of_tokens(
    family: str, limit: int | None, folders: dict[str, Path], turns: list[Turn], samples: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Twelve questions, every fifth frame one. Qwen3.5's linear attention cannot forget, so all is read anew."""
    clip = str(samples / "pedestrians.mp4")
    model, every = str(folders[family]), "5s"
    arguments = ask("rtsp://camera/live", "What is it?", model, fps=2.0, every=every, max_tokens=8, limit=limit)
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=itertools.count().__next__))
    assert command.answer(arguments, lambda _, settings, expect: open_stream(clip, settings), Console()) == 0
    alive = list(live_at_questions(clip))
    assert len(turns) == len(alive) >= 10
    most = limit or 4096
    assert all(turn.length <= most - 8 for turn in turns)
    if limit is None:
        assert [turn.groups for turn in turns] == alive
    told = [line for line in capsys.readouterr().err.splitlines() if "frames" in line]
    numbers = [re.search(r"s: ([\d,]+)(?: \(([\d,]+) new\))? of", line) for line in told]
    assert [int(found[1]) for found in numbers if found] == [turn.groups for turn in turns]
    if family == "qwen3_5":
        assert all(turn.read == turn.length for turn in turns)
        assert all(found and found[2] is None for found in numbers)
        return
    assert turns[0].read == turns[0].length
    for turn, found in zip(turns[1:], numbers[1:], strict=True):
        assert found is not None
        text = turn.read - int(found[2])
        assert 0 < text < 5 * 20 + 60  # five times, the question, and marks; a character is a token


def live_at_questions(clip: str) -> Iterator[int]:
    """How many groups some pixel shows at each question."""
    owners = Owners(2)
    asked = 0
    with open_stream(clip, source={"fps": 2.0}, **STREAM) as stream:
        for count, selection in enumerate(stream, 1):
            owners.add(selection)
            if count % 5 == 0:
                asked = count
                yield len(owners.live)
        if asked < count:
            yield len(owners.live)
