"""The experiments that learn where tokens go: what they draw, paint and round is right, and the scorer learns."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from foveate.bench.cases import learned_budget, learned_gaze  # noqa: E402 # they need torch
from foveate.pipeline.learned import picture_levels  # noqa: E402


def place(x: float, y: float, lod: float) -> tuple[torch.Tensor, ...]:
    return torch.tensor([float(x)]), torch.tensor([float(y)]), torch.tensor([float(lod)])


def test_a_gaze_shows_its_square_and_leaves_the_rest_coarse():
    picture = torch.rand(1, 1, 128, 128, generator=torch.Generator().manual_seed(3))
    levels = picture_levels(picture)
    seen = learned_gaze.seen(levels, place(64, 48, 0))
    assert seen[..., 32:64, 48:80].numpy() == pytest.approx(picture[..., 32:64, 48:80].numpy(), abs=1e-4)
    elsewhere = learned_gaze.seen(levels, place(20, 20, 0))
    assert torch.equal(seen[..., 70:, :], elsewhere[..., 70:, :])


def test_moving_the_gaze_has_a_gradient_towards_the_square():
    """The ground is grey and the square lies to the right: the error falls if the gaze moves to the right."""
    picture = torch.full((1, 1, 128, 128), 0.5)
    picture[..., 40:72, 60:92] += 0.3 * torch.sin(torch.arange(32.0))
    x, y, lod = (each.requires_grad_() for each in place(66.5, 56, 0))
    levels = picture_levels(picture)
    (learned_gaze.seen(levels, (x, y, lod)) - picture).square().mean().backward()
    assert x.grad.item() < 0


def test_the_record_compares_the_gaze_with_others(tmp_path):
    learned_gaze.learned_gaze(str(tmp_path / "out.json"), steps=2, pictures=2)
    record = json.loads((tmp_path / "out.json").read_text())
    names = [case["name"] for case in record["cases"]]
    assert names == ["learned", "random", "centre", "true place", "default"]
    best = max(record["cases"], key=lambda case: case["psnr_luma"])
    assert best["name"] in ("true place", "default")


def test_shares_of_one_token_show_the_picture_and_small_ones_its_levels():
    picture = torch.rand(1, 1, 32, 32, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    levels = picture_levels(picture)
    shares = torch.ones(1, 2, 2, dtype=torch.float64)
    assert learned_budget.shown(levels, shares).numpy() == pytest.approx(picture.numpy())
    coarse = learned_budget.shown(levels, shares / 256)
    assert coarse[0, 0, :8, :8].numpy() == pytest.approx(picture[0, 0, :16, :16].mean().item())


def test_tokens_cover_every_cell_once_within_the_budget():
    values = np.zeros((20, 24))
    values[3, 5] = values[17, 20] = 9.0
    for budget in (4, 50, 130):
        tokens = learned_budget.tokens(values, budget)
        assert len(tokens) <= budget
        covered = np.zeros((32, 32), int)
        for top, left, lod in tokens.tolist():
            covered[top : top + (1 << lod), left : left + (1 << lod)] += 1
        assert (covered[:20, :24] == 1).all()
    finest = tokens[tokens[:, 2] == 0, :2].tolist()
    assert [3, 5] in finest
    assert [17, 20] in finest


def test_a_scorer_learns_to_spend_on_what_has_detail():
    rng = np.random.default_rng(0)
    luma = np.full((128, 256), 120, np.uint8)
    luma[:, 128:] = rng.integers(60, 180, (128, 128)).astype(np.uint8)
    luma[32:64, 32:64] = rng.integers(60, 180, (32, 32))
    scorer = learned_budget.trained([luma], 25)
    values = learned_budget.cell_values(scorer, luma)
    assert values[:, 8:].mean() > values[4:, :8].mean()
