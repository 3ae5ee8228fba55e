"""An image-text model on the card, beside the engine: half floats, and torch's own work in another thread."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import cv2
import numpy as np
import pytest

from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.encoders.pca import Projection, save_projection
from foveate.pipeline.settings import ClipSettings
from foveate.pipeline.stream import open_stream

pytestmark = pytest.mark.gpu

HALF = 4e-3  # components below 1 in half floats, whose sums over 256 pixels are rounded once more
SQUARE = (slice(12, 16), slice(20, 24))  # cells, row and column


@pytest.fixture
def clip(planted: SimpleNamespace, tmp_path: Path) -> dict[str, Any]:
    """Settings for the planted model on the card, with components worked out by singular values."""
    settings = {"model": planted.folder, "weights": planted.weights, "device": "cuda", "resolution": 640}
    colours = np.random.default_rng(0).integers(0, 255, (500, 3))
    vectors = np.array([planted.expected(colour) for colour in colours])
    mean = vectors.mean(axis=0)
    basis = np.linalg.svd(vectors - mean, full_matrices=False)[2][:16]
    made = Projection(open_model(ClipSettings(**settings)).id, mean, basis, np.ones(16, np.float32), {})
    save_projection(made, tmp_path / "pca.npz")
    return {**settings, "pca": str(tmp_path / "pca.npz")}


@pytest.fixture(params=["png", "mp4"])
def pictures(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A red square, flat, on grey noise that is new in each of eight pictures of 640 x 352. Hardware decodes MP4."""
    rng = np.random.default_rng(5)
    made = []
    for _ in range(8):
        picture = rng.integers(90, 166, (352, 640, 1), np.uint8).repeat(3, axis=2)
        picture[12 * 16 : 16 * 16, 20 * 16 : 24 * 16] = (230, 20, 20)
        made.append(picture)
    return in_files(made, tmp_path) if request.param == "png" else in_video(made, tmp_path / "clip.mp4")


def in_files(pictures: list[Any], folder: Path) -> str:
    for index, picture in enumerate(pictures):
        cv2.imwrite(str(folder / f"f_{index:04d}.png"), picture[..., ::-1])
    return str(folder / "f_%04d.png")


def in_video(pictures: list[Any], path: Path) -> str:
    with av.open(str(path), "w") as out:
        stream = out.add_stream("libx264", rate=25, options={"qp": "4"})
        stream.height, stream.width = pictures[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        for picture in pictures:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        out.mux(stream.encode(None))
    return str(path)


def test_its_vectors_are_the_planted_ones(planted: SimpleNamespace, clip: dict[str, Any]) -> None:
    colours = [(255, 0, 0), (200, 30, 90), (0, 0, 255), (128, 128, 128)]
    row = np.array([colours], np.uint8).repeat(16, axis=0).repeat(16, axis=1)
    vectors = open_model(ClipSettings(**clip)).encode_image(row, 64)[0]
    for found, colour in zip(vectors, colours, strict=True):
        np.testing.assert_allclose(found, planted.expected(colour), atol=HALF)


def test_both_engines_see_what_it_is_asked_for(clip: dict[str, Any], pictures: str) -> None:
    participation = {}
    for engine in ("cpu", "cuda"):
        with open_stream(
            pictures, engine=engine, encoder="open_clip", clip=clip, query=["red"], budget=150, maps=("query",)
        ) as stream:
            last = list(stream)[-1]
        assert last.extras["embedding_age"] is not None
        participation[engine] = last.maps["query"]
        fine = (last.lod == 0) & np.isin(last.y // 16, np.r_[SQUARE[0]]) & np.isin(last.x // 16, np.r_[SQUARE[1]])
        assert fine.sum() >= 0.98 * 16
    inside = np.zeros_like(participation["cpu"], np.bool_)
    inside[SQUARE] = True
    assert participation["cuda"][inside].min() > 0.9
    np.testing.assert_allclose(participation["cuda"], participation["cpu"], atol=0.02)
