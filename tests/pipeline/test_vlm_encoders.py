"""Positions in the vision encoders themselves: SigLIP 2 of transformers, NaFlexVit of timm, with random weights.

They need ``pip install torch torchvision transformers timm``. The right positions are the models' own, of whole grids
in the order that they were made for. Sums are of float32: 1e-5 is some ten roundings of values around 1.
"""

import numpy as np
import pytest

from foveate.pipeline.selection import Selection
from tests.pipeline.vlm_selections import reduced, selection_of

torch = pytest.importorskip("torch", reason="needs torch")

ROWS, COLUMNS = 8, 12
PICTURE = np.random.default_rng(3).integers(0, 256, (ROWS * 16, COLUMNS * 16, 3), np.uint8)


def tokens(lod: int) -> list[tuple[int, int, int]]:
    side = 16 << lod
    height, width, _ = PICTURE.shape
    return [(lod, x + side // 2, y + side // 2) for y in range(0, height, side) for x in range(0, width, side)]


def shown(chosen: list[tuple[int, int, int]]) -> Selection:
    """A Selection of tokens of PICTURE. Samples are rounded, as they are in real ones."""
    selection = selection_of(PICTURE.shape[1], PICTURE.shape[0], chosen)
    for patch, (lod, x, y) in zip(selection.patches, chosen, strict=True):
        top, left = (y >> lod) - 8, (x >> lod) - 8
        patch[:] = np.rint(reduced(PICTURE, lod)[top : top + 16, left : left + 16])
    return selection


def rows_of_pixels(lod: int) -> "torch.Tensor":
    """The whole picture, reduced by 2^lod, as rows of patches in [-1, 1], row by row: [1, N, 768]."""
    pixels = np.rint(reduced(PICTURE, lod)).astype(np.float32) / 127.5 - 1
    height, width, _ = pixels.shape
    patches = pixels.reshape(height // 16, 16, width // 16, 16, 3).swapaxes(1, 2).reshape(1, -1, 768)
    return torch.from_numpy(np.ascontiguousarray(patches))


MIXED = [tokens(2)[1], tokens(1)[0], tokens(1)[13], tokens(0)[40], tokens(0)[5], tokens(0)[95]]


class TestSiglip2:
    @pytest.fixture
    def model(self):
        pytest.importorskip("transformers", reason="needs transformers")
        from transformers import Siglip2VisionConfig, Siglip2VisionModel

        from foveate.pipeline.vlm.siglip2 import attach

        torch.manual_seed(1)
        config = Siglip2VisionConfig(
            hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, num_patches=49
        )
        model = Siglip2VisionModel(config).eval()
        torch.nn.init.normal_(model.embeddings.position_embedding.weight)
        attach(model)
        return model

    @torch.no_grad()
    @pytest.mark.parametrize("lod", [0, 1, 2])
    def test_all_tokens_of_one_lod_are_the_reduced_picture(self, model, lod):
        from foveate.pipeline.vlm.siglip2 import inputs

        whole = rows_of_pixels(lod)
        shape = torch.tensor([[ROWS >> lod, COLUMNS >> lod]])
        expected = model(whole, torch.ones(whole.shape[:2], dtype=torch.int32), shape)
        found = model(**inputs([shown(tokens(lod))]))
        assert (found.last_hidden_state - expected.last_hidden_state).abs().max() < 2e-5
        assert (found.pooler_output - expected.pooler_output).abs().max() < 2e-5

    @torch.no_grad()
    def test_every_token_of_a_mixture_is_at_its_own_place(self, model):
        from foveate.pipeline.vlm.siglip2 import inputs

        found = model.embeddings(**_pixels_and_shapes(inputs([shown(MIXED)], length=9)))[0]
        for k, (lod, x, y) in enumerate(MIXED):
            shape = torch.tensor([[ROWS >> lod, COLUMNS >> lod]])
            whole = model.embeddings(rows_of_pixels(lod), shape)[0]
            expected = whole[(y // (16 << lod)) * (COLUMNS >> lod) + x // (16 << lod)]
            assert (found[k] - expected).abs().max() < 1e-5

    @torch.no_grad()
    def test_without_places_a_subset_is_read_as_the_head_of_a_grid(self, model):
        """Why places are needed: given the grid's size alone, the last token gets the place of the sixth cell."""
        from foveate.pipeline.vlm.siglip2 import inputs

        given = inputs([shown(MIXED)])
        given["spatial_shapes"] = torch.tensor([[2, 3]])
        whole = model.embeddings(rows_of_pixels(0), torch.tensor([[ROWS, COLUMNS]]))[0]
        found = model.embeddings(**_pixels_and_shapes(given))[0]
        assert (found[5] - whole[95]).abs().max() > 0.1

    def test_another_model_is_refused(self):
        pytest.importorskip("transformers", reason="needs transformers")
        from foveate.pipeline.vlm.siglip2 import attach

        with pytest.raises(ValueError, match="Linear is no SigLIP 2"):
            attach(torch.nn.Linear(1, 1))


def _pixels_and_shapes(given):
    return {name: given[name] for name in ("pixel_values", "spatial_shapes")}


class TestNaFlexVit:
    @pytest.fixture(
        params=[
            {},
            {"pos_embed_interp_mode": "bilinear"},
            {"pos_embed_ar_preserving": True},
            {"pos_embed": "factorized"},
            {"pos_embed": "factorized", "pos_embed_ar_preserving": True},
        ],
        ids=["bicubic", "bilinear", "square", "factorized", "factorized-square"],
    )
    def model(self, request):
        naflexvit = pytest.importorskip("timm.models.naflexvit", reason="needs timm")
        torch.manual_seed(2)
        cfg = naflexvit.NaFlexVitCfg(embed_dim=32, depth=2, num_heads=2, pos_embed_grid_size=(7, 7), **request.param)
        model = naflexvit.NaFlexVit(cfg, num_classes=5).eval()
        for name, parameter in model.embeds.named_parameters():
            if name.startswith("pos_embed"):
                torch.nn.init.normal_(parameter)
        return model

    @torch.no_grad()
    def test_cells_of_a_whole_grid_need_no_attaching(self, model):
        """The view's coordinates are timm's own, so is the grid that it infers from them, and so are the results."""
        view = shown(tokens(0)).naflex()
        patches = torch.from_numpy(view.patches).float()[None] / 127.5 - 1
        coords = torch.from_numpy(view.coords)[None]
        assert (coords[0].amax(0) + 1).tolist() == list(view.grid) == [ROWS, COLUMNS]
        expected = model(rows_of_pixels(0), torch.cartesian_prod(torch.arange(ROWS), torch.arange(COLUMNS))[None],
                         torch.ones(1, ROWS * COLUMNS, dtype=torch.bool))  # fmt: skip
        assert (model(patches, coords, torch.from_numpy(view.valid)[None]) - expected).abs().max() < 1e-5

    @torch.no_grad()
    @pytest.mark.parametrize("lod", [0, 1, 2])
    def test_all_tokens_of_one_lod_are_the_reduced_picture(self, model, lod):
        from foveate.pipeline.vlm.naflexvit import attach, inputs

        cells = torch.cartesian_prod(torch.arange(ROWS >> lod), torch.arange(COLUMNS >> lod))[None]
        expected = model(rows_of_pixels(lod), cells, torch.ones(cells.shape[:2], dtype=torch.bool))
        attach(model)
        assert (model(inputs([shown(tokens(lod))])) - expected).abs().max() < 1e-5
        assert (model(rows_of_pixels(lod), cells, torch.ones(cells.shape[:2], dtype=torch.bool)) == expected).all()

    @torch.no_grad()
    def test_every_token_of_a_mixture_is_at_its_own_place(self, model):
        from foveate.pipeline.vlm.naflexvit import attach, inputs

        given = inputs([shown(MIXED), shown(tokens(1))])
        expected = []
        for lod, x, y in MIXED:
            rows, columns = ROWS >> lod, COLUMNS >> lod
            cells = torch.cartesian_prod(torch.arange(rows), torch.arange(columns))[None]
            whole, _ = model.embeds(rows_of_pixels(lod), cells)
            expected.append(whole[0, (y // (16 << lod)) * columns + x // (16 << lod)])
        attach(model)
        attach(model)  # the second time changes nothing
        found, _ = model.embeds(given["patches"], given["patch_coord"])
        assert (found[0, : len(MIXED)] - torch.stack(expected)).abs().max() < 1e-5

    def test_other_positions_are_refused(self):
        from foveate.pipeline.vlm.naflexvit import attach

        naflexvit = pytest.importorskip("timm.models.naflexvit", reason="needs timm")
        turning = naflexvit.NaFlexVitCfg(embed_dim=32, depth=1, num_heads=2, pos_embed="none", rope_type="axial")
        plain = naflexvit.NaFlexVitCfg(embed_dim=32, depth=1, num_heads=2, pos_embed_antialias=False)
        points = naflexvit.NaFlexVitCfg(embed_dim=32, depth=1, num_heads=2, pos_embed_use_grid_sample=True)
        for cfg, reason in ((turning, "position table alone"), (plain, "antialiasing"), (points, "grid_sample")):
            with pytest.raises(ValueError, match=reason):
                attach(naflexvit.NaFlexVit(cfg, num_classes=5))
        with pytest.raises(ValueError, match="position table alone"):
            attach(torch.nn.Linear(1, 1))
