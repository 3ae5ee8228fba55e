"""``foveate run --encode``, with small models of random weights in folders."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from foveate.app.arguments import run_arguments
from foveate.app.main import main
from foveate.pipeline.sinks import read_json_lines, read_shards
from foveate.pipeline.stream import open_stream

FRAMES = 3


def line(capsys: pytest.CaptureFixture[str]) -> str:
    """The error, which is all that is said."""
    said = capsys.readouterr()
    assert said.out == ""
    (only,) = said.err.splitlines()
    assert only.startswith("foveate: error: ")
    return only


@pytest.fixture(scope="module", params=["qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "video_llama_3", "gemma4"])
def tower_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and its pictures' mean and deviation, as transformers keeps them."""
    transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra vlm")
    pytest.importorskip("torchvision", reason="needs the extra vlm")
    from tests.models.vision_language import model_of

    made = tmp_path_factory.mktemp(request.param)
    model_of(request.param).save_pretrained(made)
    name = "Gemma4ImageProcessor" if request.param == "gemma4" else "Qwen2VLImageProcessor"
    made_of = getattr(transformers, name)(image_mean=[0.5, 0.4, 0.3], image_std=[0.25, 0.3, 0.35])
    made_of.save_pretrained(made)
    return made


@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_they_are_the_towers_of_each_frame(tower_folder: Path, memory: str, clip: str, tmp_path: Path) -> None:
    import torch
    import transformers

    from foveate.pipeline.vlm.groups import Groups
    from foveate.pipeline.vlm.rows import channel_rows, pixel_rows, resampled
    from foveate.pipeline.vlm.towers import Tower

    out = tmp_path / "emb.npz"
    flags = ["--encode", str(tower_folder), "--frames", str(FRAMES), "-b", "60", "--memory", memory, "-q"]
    assert main(["run", clip, *flags, "--out", str(out)]) == 0
    ((header, arrays),) = read_shards(out)
    assert header["config"]["encode"] == str(tower_folder)

    model = transformers.AutoModelForImageTextToText.from_pretrained(tower_folder, dtype="auto").eval()
    tower = Tower(model.to("cuda" if torch.cuda.is_available() else "cpu"))
    merge = 3 if "gemma4" in tower_folder.name else 2
    assert header["config"]["allocation"]["merge"] == merge
    source: Any = {"source": {"frames": FRAMES}, "budget": 60, "allocation": {"merge": merge, "memory": memory}}
    with open_stream(clip, patches=True, **source) as stream:
        selections = list(stream)
    assert arrays["embeddings"].dtype == np.float32
    each, mean, std = merge**2, (0.5, 0.4, 0.3), (0.25, 0.3, 0.35)
    assert arrays["embeddings"].shape == (sum(map(len, selections)) // each, 32)
    for number, selection in enumerate(selections):
        groups = Groups.of(selection, merge)
        assert len(groups) > 1
        patches = resampled(selection.patches[groups.order], tower.patch)
        made = pixel_rows(patches, mean, std) if merge == 3 else channel_rows(patches, mean, std, tower.frames)
        expected = tower.encode(torch.from_numpy(made), [groups]).pooler_output[0].cpu().numpy()
        start, end = arrays["offsets"][number : number + 2] // each
        found = arrays["embeddings"][start:end]
        for place, row in enumerate(expected):  # of the tower, which goes row by row
            own = groups.order[each * place] // each  # of the tokens, which go coarse to fine
            np.testing.assert_array_equal(found[own], row)


@pytest.mark.parametrize("whole", [False, True], ids=["vision", "with text"])
def test_siglip_2_has_one_for_each_token(whole: bool, clip: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra vlm")
    import torch

    from foveate.pipeline.vlm import siglip2

    torch.manual_seed(1)
    small = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    vision = transformers.Siglip2VisionConfig(**small, num_patches=49)
    if whole:
        text = {**small, "vocab_size": 20, "projection_size": 32}
        saved = transformers.Siglip2Model(
            transformers.Siglip2Config(text_config=text, vision_config=vision.to_dict())
        ).eval()
    else:
        saved = transformers.Siglip2VisionModel(vision).eval()
    embeddings = getattr(saved, "vision_model", saved).embeddings
    torch.nn.init.normal_(embeddings.position_embedding.weight)
    saved.save_pretrained(tmp_path / "model")
    out = tmp_path / "emb.safetensors"
    flags = ["--encode", str(tmp_path / "model"), "--frames", str(FRAMES), "-b", "40", "-q"]
    lines = tmp_path / "tokens.jsonl"
    assert main(["run", clip, *flags, "--out", str(out), str(lines)]) == 0
    assert len(list(read_json_lines(lines)[1])) == FRAMES  # which holds none, and is as it is
    ((_, arrays),) = read_shards(out)
    with open_stream(clip, patches=True, source={"frames": FRAMES}, budget=40) as stream:
        selections = list(stream)
    siglip2.attach(saved)
    run = saved.get_image_features if whole else saved  # which returns the same of the vision model
    with torch.no_grad():
        expected = [run(**siglip2.inputs([each])).last_hidden_state[0].numpy() for each in selections]
    np.testing.assert_allclose(arrays["embeddings"], np.concatenate(expected), atol=1e-5)  # also where a GPU did it


def test_a_folder_as_processors_are_saved_but_without_weights(
    clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers", minversion="5.18", reason="needs the extra vlm")
    pytest.importorskip("torchvision", reason="needs the extra vlm")
    from tests.models.processor import TEMPLATE, processor
    from tests.models.vision_language import model_of

    made, out = tmp_path / "model", str(tmp_path / "a.npz")
    pictures, videos = transformers.Qwen2VLImageProcessor(), transformers.Qwen2VLVideoProcessor()
    whole = transformers.Qwen2_5_VLProcessor(pictures, processor().tokenizer, videos, chat_template=TEMPLATE)
    whole.save_pretrained(made)
    model_of("qwen2_5_vl").save_pretrained(made)
    flags = ["--encode", str(made), "--frames", "1", "-b", "20", "-q", "-o", out]
    assert main(["run", clip, *flags]) == 0
    assert next(read_shards(out))[1]["embeddings"].shape[1] == 32
    (made / "model.safetensors").unlink()
    capsys.readouterr()
    assert main(["run", clip, *flags]) == 1
    assert f"the model in {made} cannot be loaded: " in line(capsys)


@pytest.mark.parametrize("outputs", [[], ["--out", "a.jsonl", "b.parquet"], ["--overlay", "a.mp4"]])
def test_an_output_must_hold_them(
    outputs: list[str], clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", clip, "--encode", "m", *outputs]) == 2
    assert "--encode m needs an output that holds embeddings, .npz or .safetensors; give one with --out" in line(capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "code", "said"),
    [
        (None, 2, "has no config.json, so it is not a transformers model"),
        ('{"model_type": "llava"}', 1, "models of type 'llava' do not fit; those of qwen2_vl, "),
        ("{", 1, "cannot be loaded: config.json: Expecting property name"),
        ('{"model_type": "qwen2_5_vl"}', 1, "cannot be loaded"),
        ('{"model_type": "siglip2"}', 1, "cannot be loaded"),
    ],
)
def test_a_folder_that_does_not_do_is_one_line(
    config: str | None, code: int, said: str, clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if config is not None:
        (tmp_path / "config.json").write_text(config)
        if "qwen" in config or "siglip" in config:
            pytest.importorskip("transformers", reason="needs the extra vlm")
    out = tmp_path / "out" / "a.npz"
    out.parent.mkdir()
    assert main(["run", clip, "--encode", str(tmp_path), "-o", str(out)]) == code
    assert said in line(capsys)
    assert not out.exists()


def test_no_folder_is_one_line(clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", clip, "--encode", "absent", "-o", str(tmp_path / "a.npz")]) == 2
    assert line(capsys).endswith("--encode must be a folder with a model, got 'absent'")


def test_a_missing_extra_comes_with_the_command_that_brings_it(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl"}))
    run_arguments([clip])  # the first time, the parser looks for torch itself
    monkeypatch.setitem(sys.modules, "torch", None)
    assert main(["run", clip, "--encode", str(tmp_path), "-o", str(tmp_path / "a.npz")]) == 1
    assert "--encode DIR needs torch, which is not installed: pip install" in line(capsys)


def test_a_merge_that_does_not_fit_is_one_line(
    clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class PerToken:
        name, merge = "m", 1

    monkeypatch.setattr("foveate.app.encode.open_encoder", lambda folder, outputs: PerToken())
    flags = ["--encode", "m", "--allocation.merge", "2", "-o", str(tmp_path / "a.npz")]
    assert main(["run", clip, *flags]) == 2
    assert "--allocation.merge 2 does not fit --encode m; leave it out, the model decides: 1" in line(capsys)


def test_the_models_own_files_are_not_written_over(
    clip: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    assert main(["run", clip, "--encode", str(tmp_path), "-o", str(weights)]) == 1
    assert f"it is a file of the model in {tmp_path}; name another file" in line(capsys)
    assert weights.read_bytes() == b"weights"
