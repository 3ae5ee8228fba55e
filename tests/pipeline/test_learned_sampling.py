"""Sampling anywhere: the engine's own patches at its tokens, values by hand between them, gradients by small steps."""

from pathlib import Path

import numpy as np
import pytest

from foveate.pipeline import open_stream

torch = pytest.importorskip("torch")

from foveate.pipeline.learned import frame_patches, picture_levels, sample_patches  # noqa: E402 # they need torch

CLIPS = Path(__file__).resolve().parents[2] / "sample_videos"


def doubles(*values: float) -> torch.Tensor:
    return torch.tensor([values], dtype=torch.float64)


def ramp(height: int, width: int) -> torch.Tensor:
    """A plane 3x + 5y in the pixels' centres, [1, 1, H, W]: linear filters give it back at any place inside."""
    across, down = torch.arange(width).double() + 0.5, torch.arange(height).double() + 0.5
    return (3 * across + 5 * down[:, None])[None, None]


@pytest.mark.parametrize("clip", ["pedestrians", "bunny"])
@pytest.mark.parametrize("strategy", ["rate_distortion", "soft"])
def test_at_tokens_the_samples_are_the_engines_patches(clip, strategy):
    options = {"source": {"frames": 2}, "change": {"keyframe_interval": 1}, "allocation": {"strategy": strategy}}
    with open_stream(CLIPS / f"{clip}.mp4", patches=True, **options) as stream:
        for selection in stream:
            where = (torch.from_numpy(each).float() for each in (selection.x, selection.y, selection.lod))
            sampled = frame_patches(stream.frame, *where).numpy()
            # The engine rounds to whole numbers. Places in float32 are off by up to 1e-4 samples, of up to 255.
            assert np.abs(sampled - selection.patches).max() <= 0.5 + 255e-4


def test_at_tokens_of_a_picture_of_odd_size_too():
    rng = np.random.default_rng(3)
    pictures = [rng.integers(0, 256, (75, 101, 3), np.uint8)]
    with open_stream(pictures, fps=1, patches=True, budget=20) as stream:
        selection = next(stream)
        assert len(set(selection.lod.tolist())) > 1
        where = (torch.from_numpy(each).double() for each in (selection.x, selection.y, selection.lod))
        assert np.abs(frame_patches(stream.frame, *where).numpy() - selection.patches).max() <= 0.5 + 1e-6


def test_levels_are_means_and_the_edge_is_repeated():
    picture = torch.arange(33 * 40).reshape(1, 1, 33, 40).double()
    levels = picture_levels(picture, 7)
    padded = np.pad(picture[0, 0].numpy(), ((0, 31), (0, 24)), mode="edge")
    for level in range(6):
        side = 1 << level
        means = padded.reshape(64 // side, side, 64 // side, side).mean(axis=(1, 3))
        assert levels[level][0, 0].numpy() == pytest.approx(means)
    assert [tuple(level.shape[2:]) for level in levels[5:]] == [(2, 2), (1, 1), (1, 1)]


def test_between_tokens_the_samples_are_trilinear():
    levels = picture_levels(ramp(256, 256))
    x, y, lod = doubles(100.25, 131.7), doubles(120.5, 99.125), doubles(0.0, 1.6)
    found = sample_patches(levels, x, y, lod)
    offsets = np.arange(16) - 7.5
    for token, (left, top, scale) in enumerate([(100.25, 120.5, 1.0), (131.7, 99.125, 2**1.6)]):
        wanted = 3 * (left + offsets * scale) + 5 * (top + offsets[:, None] * scale)
        assert found[0, token, 0].numpy() == pytest.approx(wanted)


def test_levels_are_blended_by_the_lods_fraction():
    """Level 0 alternates between 0 and 8, level 1 is 4 everywhere: at a sample, 1.25 levels of 2 are 0.75 of it."""
    stripes = torch.zeros(1, 1, 64, 64, dtype=torch.float64)
    stripes[..., 1::2] = 8
    found = sample_patches(picture_levels(stripes, 1), doubles(32.5), doubles(32.0), doubles(0.25), side=1)
    assert found.item() == pytest.approx(0.75 * 0 + 0.25 * 4)


def test_lods_beyond_the_levels_sample_the_nearest_one():
    levels = picture_levels(ramp(256, 256), 1)
    found = sample_patches(levels, doubles(128.0, 128.0), doubles(128.0, 128.0), doubles(-1.0, 2.0), side=4)
    offsets = np.array([-1.5, -0.5, 0.5, 1.5])
    for token, scale in enumerate((0.5, 4.0)):
        wanted = 3 * (128 + offsets * scale) + 5 * (128 + offsets[:, None] * scale)
        assert found[0, token, 0].numpy() == pytest.approx(wanted)


@pytest.mark.parametrize("lod", [-0.4, 0.3, 1.7, 2.2, 3.4])
def test_gradients_by_centre_lod_and_picture_are_those_of_small_steps(lod):
    generator = torch.Generator().manual_seed(7)
    pictures = torch.rand(2, 1, 9, 14, dtype=torch.float64, generator=generator, requires_grad=True)
    places = torch.tensor([[5.3, 13.9], [1.1, 8.77]], dtype=torch.float64)
    x, y = places.clone().requires_grad_(), (places.flip(1) * 0.6).requires_grad_()
    lods = torch.full_like(places, lod).requires_grad_()

    def sampled(*inputs):
        return sample_patches(picture_levels(inputs[0], 3, multiple=16), *inputs[1:], side=2)

    assert torch.autograd.gradcheck(sampled, (pictures, x, y, lods), eps=1e-6, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("lod", [0.0, 1.0, 2.0])
def test_at_a_whole_lod_the_gradient_is_that_towards_greater_ones(lod):
    levels = picture_levels(torch.rand(1, 1, 64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    x, y, at = doubles(31.3), doubles(30.1), doubles(lod).requires_grad_()
    (gradient,) = torch.autograd.grad(sample_patches(levels, x, y, at).sum(), at)
    with torch.no_grad():
        step = sample_patches(levels, x, y, at + 1e-7).sum() - sample_patches(levels, x, y, at).sum()
    assert gradient.item() == pytest.approx(step.item() / 1e-7, rel=1e-3)


def test_an_empty_selection_has_no_patches():
    none = torch.zeros(1, 0)
    assert sample_patches(picture_levels(torch.zeros(1, 3, 32, 32)), none, none, none).shape == (1, 0, 3, 16, 16)


def test_wrong_shapes_are_named():
    levels = picture_levels(torch.zeros(2, 1, 32, 32))
    with pytest.raises(ValueError, match=r"must be \[2, K\] for 2 pictures, got \[1, 1\]"):
        sample_patches(levels, *3 * (torch.zeros(1, 1),))
    with pytest.raises(ValueError, match="at least one level"):
        sample_patches([], *3 * (torch.zeros(1, 1),))
    with pytest.raises(ValueError, match=r"pictures must be floats \[B, C, H, W\], got torch.uint8 \[8, 8\]"):
        picture_levels(torch.zeros(8, 8, dtype=torch.uint8))
    with pytest.raises(ValueError, match="top must be at least 0, got -1"):
        picture_levels(torch.zeros(1, 1, 8, 8), -1)
