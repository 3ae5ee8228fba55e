"""Queries to a model, from words and pictures to tokens: with a stand-in for the model, and with open_clip's own.

The second needs torch and open_clip, which CI does not install: ``pip install -e '.[clip]'``, then run this file.
"""

import threading
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

import foveate.pipeline.encoders.query as query_module
from foveate.pipeline.encoders.image_text import unit
from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.encoders.pca import Projection, load_projection, save_projection
from foveate.pipeline.encoders.query import ClipEncoder
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.terms import relevance
from foveate.pipeline.selection import Selection
from foveate.pipeline.settings import ClipSettings
from foveate.pipeline.stream import Stream, open_stream

WORDS = {"red": (1, -1, -1, 0), "blue": (-1, -1, 1, 0), "green": (-1, 1, -1, 0), "object": (0, 0, 0, 1)}
RED, BLUE = (12, 20), (4, 4)  # the first cells of two squares, row and column
SIDE = 4  # cells along a square
LIMIT = 10.0  # seconds for what takes none


class ColourModel:
    """Stands for a model: parts of 16 pixels become unit vectors of their colour and a constant, in four dimensions."""

    id, dimension, resolution, sharpness = "colours 4", 4, 64, 20.0

    def __init__(self) -> None:
        self.images = 0
        self.texts: list[str] = []

    def encode_texts(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        words = [[WORDS.get(word, (0, 0, 0, 0)) for word in text.split()] for text in texts]
        known = {"things": "object", "stuff": "object", "texture": "object"}
        words = [[WORDS.get(known.get(word, word), (0, 0, 0, 0)) for word in text.split()] for text in texts]
        return unit(np.array([np.sum(vectors, axis=0) for vectors in words], np.float32))

    def cuts(self, text: str) -> bool:
        return len(text) > 40

    def encode_image(self, rgb: Any, longest: int) -> Any:
        self.images += 1
        height, width = (max(side // 16, 1) for side in rgb.shape[:2])
        small = cv2.resize(rgb, (width, height), interpolation=cv2.INTER_AREA).astype(np.float32) / 127.5 - 1
        return unit(np.concatenate([small, np.full((height, width, 1), 0.5, np.float32)], -1))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """The stand-in where the model would be opened, and settings that ask for it."""
    model = ColourModel()
    monkeypatch.setattr(query_module, "open_model", lambda settings: model)
    mean = np.array([0, 0, 0, 0.8], np.float32)  # of pictures that are grey for the most part
    identity = Projection(model.id, mean, np.eye(4, dtype=np.float32), np.ones(4, np.float32), {})
    save_projection(identity, tmp_path / "pca.npz")
    return SimpleNamespace(model=model, clip={"pca": str(tmp_path / "pca.npz")})


@pytest.fixture
def real(planted: SimpleNamespace, tmp_path: Path) -> SimpleNamespace:
    """The planted open_clip model, and settings that ask for it, with components worked out by singular values."""
    settings = ClipSettings(model=planted.folder, weights=planted.weights, device="cpu")
    colours = np.random.default_rng(0).integers(0, 255, (500, 3))
    vectors = np.array([planted.expected(colour) for colour in colours])
    mean = vectors.mean(axis=0)
    basis = np.linalg.svd(vectors - mean, full_matrices=False)[2][:16]
    made = Projection(open_model(settings).id, mean, basis, np.ones(16, np.float32), {})
    save_projection(made, tmp_path / "pca.npz")
    clip = {"model": planted.folder, "weights": planted.weights, "device": "cpu", "pca": str(tmp_path / "pca.npz")}
    return SimpleNamespace(clip={**clip, "resolution": 640}, expected=planted.expected)  # one part per cell


@pytest.fixture
def clip(tmp_path: Path) -> str:
    """Eight pictures of 640 x 352: a red and a blue square, flat, on grey noise that is new in each."""
    rng = np.random.default_rng(5)
    folder = tmp_path / "clip"
    folder.mkdir()
    for index in range(8):
        picture = rng.integers(90, 166, (352, 640, 1), np.uint8).repeat(3, axis=2)
        for (row, column), bgr in ((RED, (20, 20, 230)), (BLUE, (230, 20, 20))):
            picture[row * 16 : (row + SIDE) * 16, column * 16 : (column + SIDE) * 16] = bgr
        cv2.imwrite(str(folder / f"f_{index:04d}.png"), picture)
    return str(folder / "f_%04d.png")


def fine_share(selection: Selection, cell: tuple[int, int]) -> float:
    """Share of a square's cells that are tokens of LOD 0."""
    rows, columns = selection.y // 16, selection.x // 16
    row, column = cell
    within = (rows >= row) & (rows < row + SIDE) & (columns >= column) & (columns < column + SIDE)
    return float((within & (selection.lod == 0)).sum() / SIDE**2)


def opened(clip: str, model: SimpleNamespace, *queries: str, **more: Any) -> Stream:
    return open_stream(clip, encoder="open_clip", clip=model.clip, query=queries, engine="cpu", **more)


def last(stream: Stream) -> Selection:
    with stream:
        return list(stream)[-1]


@pytest.fixture(params=["stand_in", "real"])
def model(request: pytest.FixtureRequest) -> Iterator[SimpleNamespace]:
    yield request.getfixturevalue(request.param)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("foveate-encoder")]


def test_what_is_asked_for_is_seen_in_full_detail_and_the_rest_is_not(clip: str, model: SimpleNamespace) -> None:
    red, blue = (last(opened(clip, model, query, budget=150)) for query in ("red", "blue"))
    for found, wanted, other in ((red, RED, BLUE), (blue, BLUE, RED)):
        assert fine_share(found, wanted) >= 0.98
        assert fine_share(found, other) <= 0.5
        assert found.participation is not None
        cells = (found.y // 16 - wanted[0]) // SIDE == 0
        assert found.participation[cells & ((found.x // 16 - wanted[1]) // SIDE == 0)].min() > 0.9


def test_a_negative_takes_its_part_away(clip: str, model: SimpleNamespace) -> None:
    found = last(opened(clip, model, "red", "blue", "-blue", maps=("query",)))
    inner = slice(1, SIDE - 1)  # the interpolated border of a square holds less of it
    participation = found.maps["query"]
    assert participation[RED[0] :, RED[1] :][inner, inner].min() > 0.9
    assert participation[BLUE[0] :, BLUE[1] :][inner, inner].max() < 0.1


def test_a_map_for_each_query_and_word(clip: str, model: SimpleNamespace) -> None:
    found = last(opened(clip, model, "a red thing", maps=("query", "query:red", "query:blue", "query:thing")))
    red, blue = ((row + 2, column + 2) for row, column in (RED, BLUE))
    assert found.maps["query:red"][red] > 0.9 > 0.1 > found.maps["query:red"][blue]
    assert found.maps["query:blue"][blue] > 0.9 > 0.1 > found.maps["query:blue"][red]
    # The other words are not known; the model's float32 sums run in another order.
    np.testing.assert_allclose(found.maps["query"], found.maps["query:red"], rtol=1e-4, atol=1e-6)


def test_the_channels_are_the_coefficients_of_what_is_there(clip: str, real: SimpleNamespace) -> None:
    names = tuple(f"clip{index}" for index in range(16))
    with open_stream(clip, encoder="open_clip", clip=real.clip, maps=names, engine="cpu") as stream:
        first = next(stream)
    projection = load_projection(Path(real.clip["pca"]), open_model(ClipSettings(**real.clip)).id, 24)
    wanted = projection.basis @ (real.expected((230, 20, 20)) - projection.mean)
    found = [first.maps[name][RED[0] + 2, RED[1] + 2] for name in names]
    np.testing.assert_allclose(found, wanted, atol=0.02)  # 8-bit YCbCr: colours off by up to 2 of 255


@pytest.mark.parametrize("cut_out", [False, True])
def test_an_example_is_looked_for(clip: str, model: SimpleNamespace, tmp_path: Path, cut_out: bool) -> None:
    crop = np.full((48, 64, 3), (230, 20, 20), np.uint8)
    if cut_out:  # a disc, with transparent red around it
        disc = cv2.circle(np.zeros((300, 300), np.uint8), (90, 90), 30, 255, -1)
        crop = np.full((300, 300, 4), (20, 20, 230, 0), np.uint8)
        crop[disc > 0] = 230, 20, 20, 255
    cv2.imwrite(str(tmp_path / "crop.png"), crop)
    found = last(opened(clip, model, query_image=[str(tmp_path / "crop.png")], budget=150))
    assert fine_share(found, BLUE) >= 0.98
    assert fine_share(found, RED) <= 0.5
    with pytest.raises(SourceError, match=r"absent\.png"):
        opened(clip, model, query_image=[str(tmp_path / "absent.png")])


def test_a_hundred_queries_cost_the_same_encodings_of_pictures_as_one(clip: str, stand_in: SimpleNamespace) -> None:
    counts = []
    for queries in (["red"], ["red", "blue"], [f"{word} {number}" for number in range(25) for word in WORDS]):
        stand_in.model.images = 0
        last(opened(clip, stand_in, *queries))
        counts.append(stand_in.model.images)
    assert counts[0] == counts[1] == counts[2] > 0


def test_another_query_takes_effect_on_the_next_frame_and_encodes_nothing(clip: str, stand_in: SimpleNamespace) -> None:
    with opened(clip, stand_in, "red", maps=("query",)) as stream:
        red = list(stream)
    count = stand_in.model.images
    with opened(clip, stand_in, "blue", maps=("query",)) as stream:
        blue = list(stream)
    stand_in.model.images = 0
    changed = []
    with opened(clip, stand_in, "red", maps=("query",)) as stream:
        for selection in stream:
            changed.append(selection)
            if len(changed) == 1:
                stream.set_query(["blue"])
    assert stand_in.model.images == count
    answers = [
        (one == two, one == three) for one, two, three in zip(*map(asked_maps, (changed, red, blue)), strict=True)
    ]
    assert answers[0] == (True, False)
    assert answers[-1] == (False, True)
    assert set(answers) == {(True, False), (False, True)}
    assert answers == sorted(answers, reverse=True)  # one change, from one frame to the next


def asked_maps(selections: Sequence[Selection]) -> list[bytes]:
    """The map "query" of each, to be compared."""
    return [selection.maps["query"].tobytes() for selection in selections]


def test_two_runs_of_a_file_are_equal(clip: str, model: SimpleNamespace) -> None:
    one, two = ([*opened(clip, model, "red")] for _ in range(2))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.x, second.x)
        np.testing.assert_array_equal(first.score, second.score)
        assert first.extras == second.extras == {"embedding_age": first.extras["embedding_age"]}


def test_relevance_is_the_least_softmax_against_the_contrasts() -> None:
    """Against LERF's formula (Kerr et al. 2023, 3.3), worked out here from the vectors themselves."""
    model = ColourModel()
    rng = np.random.default_rng(0)
    vectors = unit(rng.normal(size=(50, 4)))
    mean = vectors.mean(axis=0)
    basis = np.linalg.svd(vectors - mean, full_matrices=False)[2].astype(np.float32)
    projection = Projection(model.id, mean, basis, np.ones(4, np.float32), {})
    terms = ClipEncoder(model, projection, ClipSettings()).compile([Phrase("red"), Phrase("blue")]).terms
    assert terms is not None
    inputs = np.zeros((18, 50), np.float32)
    inputs[:16] = projection.compress(vectors).T
    found = relevance(terms, inputs)
    for row, word in zip(found, ("red", "blue"), strict=True):
        query, contrast = (np.exp(20.0 * vectors @ unit(np.array(WORDS[name]))) for name in (word, "object"))
        np.testing.assert_allclose(row, query / (query + contrast), atol=1e-4)


def test_without_waiting_a_slow_model_stalls_nothing(clip: str, stand_in: SimpleNamespace) -> None:
    gate = threading.Event()
    quick = stand_in.model.encode_image

    def slow(rgb: Any, longest: int) -> Any:
        assert gate.wait(LIMIT)
        return quick(rgb, longest)

    stand_in.model.encode_image = slow
    stand_in.clip["wait"] = False
    with opened(clip, stand_in, "red") as stream:
        selections = list(islice(stream, 7))  # all but the last, so that the stream still runs
        assert [selection.extras for selection in selections] == [{"embedding_age": None}] * 7
        assert all(selection.participation is None for selection in selections)
        gate.set()


def test_a_fault_of_the_model_ends_the_stream_with_the_stage_named(clip: str, stand_in: SimpleNamespace) -> None:
    def broken(rgb: Any, longest: int) -> Any:
        raise OSError("the model is broken")

    stand_in.model.encode_image = broken
    with pytest.raises(OSError, match="the model is broken") as caught, opened(clip, stand_in, "red") as stream:
        list(stream)
    assert any("cascade" in note for note in caught.value.__notes__)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("foveate-encoder")]


def test_a_run_that_is_left_early_leaves_no_thread(clip: str, stand_in: SimpleNamespace) -> None:
    with opened(clip, stand_in, "red") as stream:
        next(stream)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("foveate-encoder")]


def test_what_the_model_does_not_read_of_a_query_is_told(clip: str, stand_in: SimpleNamespace) -> None:
    with opened(clip, stand_in, "red", "red " * 20) as stream:
        (note,) = stream.header.notes[-1:]
        assert "reads only its beginning" in note
        assert note.startswith("query 'red red")


def test_without_components_it_says_what_makes_them(clip: str) -> None:
    with pytest.raises(SettingsError, match="foveate fit-pca"):
        open_stream(clip, encoder="open_clip", query=["red"])
