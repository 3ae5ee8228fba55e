"""What docs/channels.md states of the channels is true, and its examples run."""

import re
from pathlib import Path

import numpy as np
import pytest

from foveate.app.main import main
from foveate.pipeline.channels import BY_NAME, CHANNELS
from foveate.pipeline.settings import Settings
from foveate.pipeline.sinks import read_shards
from tests.docs.pages import ROOT, page

PAGE = page("channels")


def rows() -> list[list[str]]:
    text = PAGE.split("<!-- channels -->")[1].split("<!-- /channels -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


def test_every_channel_stands_in_the_table_as_the_code_declares_it() -> None:
    stated = {}
    for number, name, what, span, reduce, _ in rows():
        low, _, high = span.partition(" to ")
        stated[name.strip("`")] = (number, float(low), float(high), reduce)
        assert what
    declared = {
        channel.name: (str(place) if place < len(CHANNELS) else "", channel.low, channel.high, channel.reduce)
        for place, channel in enumerate(BY_NAME.values())
    }
    assert list(stated.items()) == list(declared.items())


def test_the_picture_is_there() -> None:
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link
    assert (ROOT / "sample_videos" / "channels.jpg").stat().st_size < 400_000


def test_the_layout_example_runs(samples: Path) -> None:
    example = next(code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "load_layout" in code)
    used = {'"clip.mp4", maps': f'"{samples / "tree.mp4"}", source={{"frames": 2}}, maps'}
    for stated, instead in used.items():
        assert stated in example
        example = example.replace(stated, instead)
    names: dict[str, object] = {}
    exec(example, names)
    assert names["layout"] == ("motion", "saliency", "gaze")
    assert names["channels"].shape == (3, 16, 20)  # type: ignore[attr-defined]


def test_the_depth_example_runs(samples: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = next(code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "ground.py" in code)
    (tmp_path / "ground.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    command = re.search(r"```sh\nfoveate (run clip\.mp4 --depth .*?)\n```", PAGE)
    assert command is not None
    words = command[1].replace("clip.mp4", str(samples / "tree.mp4")).split()
    assert main([*words, "--frames", "2", "-q"]) == 0
    header, arrays = next(read_shards(tmp_path / words[-1]))
    assert header["config"]["maps"] == ["depth", "normal_y", "occlusion"]
    middles = 16 * np.arange(240 // 16) + 7.5  # of the cells, in rows of pixels
    depth = np.broadcast_to(1 - middles[:, None] / 239, (15, 20))
    np.testing.assert_allclose(arrays["maps"][:, 0, :15, :20], [depth, depth], atol=0.01)


def test_the_channels_that_the_page_says_are_off_are_off() -> None:
    off = [name.strip("`") for number, name, *_ in rows() if not number]
    assert not set(Settings().maps) & set(off)
