"""open_clip's models: dense vectors against planted weights, every kind of tower, and what cannot be opened.

These need torch and open_clip, which CI does not install: ``pip install -e '.[clip]'``, then run this file.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from foveate.pipeline.encoders.image_text import picture_vector
from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.errors import EngineError, SettingsError
from foveate.pipeline.settings import ClipSettings

torch = pytest.importorskip("torch", reason="needs torch: pip install -e '.[clip]'")
open_clip = pytest.importorskip("open_clip", reason="needs open_clip: pip install -e '.[clip]'")

FLOAT = 1e-5  # float32 sums over 256 pixels, weights below 1


def opened(planted: SimpleNamespace, **settings: Any) -> Any:
    return open_model(ClipSettings(model=planted.folder, weights=planted.weights, device="cpu", **settings))


def parts(*colours: tuple[int, int, int]) -> np.ndarray:
    """One part of 16 x 16 pixels per colour, side by side."""
    return np.array([colours], np.uint8).repeat(16, axis=0).repeat(16, axis=1)


def test_each_part_has_the_vector_of_its_own_colour(planted: SimpleNamespace) -> None:
    colours = [(255, 0, 0), (200, 30, 90), (0, 0, 255), (128, 128, 128), (10, 250, 20)]
    vectors = opened(planted).encode_image(parts(*colours), 80)
    assert vectors.shape == (1, 5, 24)
    for found, colour in zip(vectors[0], colours, strict=True):
        np.testing.assert_allclose(found, planted.expected(colour), atol=FLOAT)


def test_a_picture_keeps_its_aspect(planted: SimpleNamespace) -> None:
    model = opened(planted)
    assert model.encode_image(np.zeros((90, 160, 3), np.uint8), 160).shape == (6, 10, 24)  # 5.6 rows of 16
    assert model.encode_image(np.zeros((160, 90, 3), np.uint8), 80).shape == (5, 3, 24)
    assert model.encode_image(np.zeros((2, 900, 3), np.uint8), 64).shape == (1, 4, 24)


def test_texts_are_the_sum_of_their_known_words(planted: SimpleNamespace) -> None:
    red, blue, car, nothing, both = opened(planted).encode_texts(["red", "blue", "a red car", "", "red blue"])
    assert red @ blue == pytest.approx(-1 / 3, abs=FLOAT)  # (1, -1, -1) against (-1, -1, 1)
    assert red @ car == pytest.approx(1, abs=FLOAT)
    assert not nothing.any()
    assert both @ red == pytest.approx(both @ blue, abs=FLOAT) == pytest.approx(3**-0.5, abs=FLOAT)


def test_a_text_beyond_what_the_model_reads_is_known_to_be_cut(planted: SimpleNamespace) -> None:
    model = opened(planted)  # reads 16 tokens, two of them marks
    assert not model.cuts(" ".join(["red"] * 13))
    assert model.cuts(" ".join(["red"] * 14 + ["blue"]))


def test_a_text_is_most_like_the_part_that_shows_it(planted: SimpleNamespace) -> None:
    model = opened(planted)
    vectors = model.encode_image(parts((250, 20, 20), (20, 20, 250), (128, 128, 128)), 48)[0]
    likeness = vectors @ model.encode_texts(["red", "blue", "object"]).T
    np.testing.assert_array_equal(likeness.argmax(axis=0), [0, 1, 2])


def test_a_picture_as_a_whole_is_the_mean_of_its_parts(planted: SimpleNamespace) -> None:
    found = picture_vector(opened(planted), np.full((40, 40, 3), (200, 30, 90), np.uint8))
    np.testing.assert_allclose(found, planted.expected((200, 30, 90)), atol=FLOAT)


def test_the_id_follows_the_weights_and_not_the_place(planted: SimpleNamespace, tmp_path: Any) -> None:
    other = torch.load(planted.weights)
    torch.save(other, tmp_path / "copy.pt")
    other["visual.proj"] = other["visual.proj"] * 1.5
    torch.save(other, tmp_path / "other.pt")
    ids = [
        open_model(ClipSettings(model=planted.folder, weights=str(path), device="cpu")).id
        for path in (planted.weights, tmp_path / "copy.pt", tmp_path / "other.pt")
    ]
    assert ids[0] == ids[1] != ids[2]


KINDS = {
    "ViT-B-32": ("ViT-B-32", {"layers": 2, "width": 64, "image_size": 64}),
    "CoCa": ("coca_ViT-B-32", {"layers": 2, "width": 64, "image_size": 64, "attn_pooler_heads": 8}),
    "ResNet": ("RN50", {"layers": [1, 1, 1, 1], "width": 8, "image_size": 64}),
    "ConvNeXt": ("convnext_base", {"timm_model_name": "test_convnext", "image_size": 64}),
    "SigLIP": ("ViT-B-16-SigLIP", {"timm_model_name": "test_vit", "image_size": 160}),
    "timm ViT": ("ViT-B-32", {"timm_model_name": "test_vit", "timm_pool": "token", "timm_proj": "", "image_size": 160}),
    "average": ("ViT-B-32", {"timm_model_name": "test_vit2", "timm_pool": "avg", "timm_proj": "", "image_size": 64}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_tower_gives_one_vector_per_part_of_any_picture(kind: str) -> None:
    from foveate.pipeline.encoders.towers import dense_tower

    name, changes = KINDS[kind]
    config = open_clip.get_model_config(name)
    dimension = 64 if kind == "SigLIP" else config["embed_dim"]  # SigLIP's has no projection: it is the tower's width
    torch.manual_seed(0)
    visual = open_clip.model._build_vision_tower(dimension, {**config["vision_cfg"], **changes}).eval()
    dense, stride = dense_tower(visual)
    with torch.inference_mode():
        vectors = dense(torch.randn(1, 3, 3 * stride, 5 * stride))
        again = dense(torch.randn(1, 3, 3 * stride, 5 * stride))
    assert vectors.shape == again.shape == (3, 5, dimension)
    assert torch.isfinite(vectors).all()
    assert vectors.std(dim=(0, 1)).max() > 0


def test_a_part_alone_is_what_a_mask_that_hides_all_others_gives() -> None:
    """The last block by its value path: computed here with attention, and a mask that leaves each token itself."""
    from foveate.pipeline.encoders.towers import dense_tower

    torch.manual_seed(0)
    config = {"layers": 3, "width": 64, "head_width": 32, "patch_size": 16, "image_size": 48}
    visual = open_clip.model._build_vision_tower(32, config).eval()
    picture = torch.randn(1, 3, 48, 48)
    with torch.inference_mode():
        tokens = visual._embeds(picture)
        for block in visual.transformer.resblocks[:2]:
            tokens = block(tokens)
        hidden = torch.full((10, 10), float("-inf")).fill_diagonal_(0)
        tokens = visual.transformer.resblocks[2](tokens, attn_mask=hidden)
        expected = (visual.ln_post(tokens[0, 1:]) @ visual.proj).reshape(3, 3, 32)
        found = dense_tower(visual)[0](picture)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)  # the same sums in another order


def test_positions_are_interpolated_to_another_aspect() -> None:
    from foveate.pipeline.encoders.towers import interpolated_positions

    torch.manual_seed(0)
    config = {"layers": 1, "width": 8, "head_width": 8, "patch_size": 16, "image_size": 64}
    visual = open_clip.model._build_vision_tower(4, config)
    ramp = torch.arange(4.0).repeat(4, 1)  # by column
    visual.positional_embedding.data[1:] = ramp.reshape(16, 1).expand(16, 8)
    found = interpolated_positions(visual, 4, 8)[1:].reshape(4, 8, 8).detach()
    torch.testing.assert_close(found[0], found[3])
    assert (found[0, 1:, 0] >= found[0, :-1, 0]).all()
    assert found[0, 3, 0] + found[0, 4, 0] == pytest.approx(3.0, abs=1e-4)  # symmetric about the middle, 1.5


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"model": "ViT-B-16"}, SettingsError, "clip.weights is missing.*openai"),
        ({"model": "ViT-B-17", "weights": "x.pt"}, SettingsError, "did you mean ViT-B-1"),
        ({"model": "ViT-B-16", "weights": "absent.pt"}, EngineError, "'absent.pt' is no file"),
        ({"model": "ViT-B-16", "weights": __file__}, EngineError, "does not hold the weights of ViT-B-16"),
    ],
)
def test_what_cannot_be_opened_is_one_line(settings: dict[str, str], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        open_model(ClipSettings(**settings))
    assert "\n" not in str(caught.value)


def test_a_folder_without_weights_is_not_opened_at_random(planted: SimpleNamespace, tmp_path: Any) -> None:
    name = "open_clip_config.json"
    (tmp_path / name).write_text((Path(planted.folder) / name).read_text())
    with pytest.raises(EngineError, match=r"give --clip\.weights a file"):
        open_model(ClipSettings(model=str(tmp_path)))
