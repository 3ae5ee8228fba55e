"""Principal components: the exact formula of likeness, the streaming fit and its check, and the file."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline.encoders.fit import TEXTS, fit_projection
from foveate.pipeline.encoders.pca import Projection, load_projection, save_projection
from foveate.pipeline.errors import SettingsError, SourceError

Array = NDArray[np.floating]
EXACT = 1e-5  # float32 sums of 64 products of numbers below 1


def units(rng: np.random.Generator, count: int, dimension: int, rank: int) -> Array:
    """Unit vectors around a common direction, all in one subspace of ``rank`` dimensions, as CLIP's lie in a cone."""
    frame = np.linalg.qr(rng.normal(size=(dimension, rank)))[0]
    inner = rng.normal(size=(count, rank)) * np.linspace(1.0, 0.3, rank) + 2.5 * np.eye(rank)[0]
    vectors = inner @ frame.T
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)


class Words:
    """Stands for an encoder: only its texts are asked for. Its vectors have 64 numbers."""

    id, dimension, resolution, sharpness = "words", 64, 64, 10.0

    def __init__(self, vectors: Array) -> None:
        self._vectors = np.asarray(vectors, np.float32)

    def encode_texts(self, texts: Sequence[str]) -> Array:
        return self._vectors[: len(texts)]

    def cuts(self, text: str) -> bool:
        return False

    def encode_image(self, rgb: Array, longest: int) -> Array:
        raise NotImplementedError


def components_of(vectors: Array, count: int) -> Projection:
    """By singular values, without the code under test."""
    mean = vectors.mean(axis=0)
    basis = np.linalg.svd(vectors - mean, full_matrices=False)[2][:count]
    return Projection("words", mean.astype(np.float32), basis.astype(np.float32), np.ones(count, np.float32), {})


def ranks(values: Array) -> Array:
    return np.argsort(np.argsort(values))


def test_the_exact_formula_ranks_as_the_vectors_do_and_cosine_of_centred_coefficients_does_not() -> None:
    rng = np.random.default_rng(3)
    vectors = units(rng, 2000, 64, 12)
    query = units(rng, 1, 64, 64)[0]
    projection = components_of(vectors, 16)
    true = vectors @ query
    coefficients = projection.compress(vectors)
    weights, bias = projection.linear(query[None])
    np.testing.assert_allclose(coefficients @ weights[0] + bias[0], true, atol=EXACT)
    centred = projection.basis @ (query - projection.mean)
    centred = np.pad(centred, (0, 16 - len(centred)))
    cosine = coefficients @ centred / np.linalg.norm(coefficients, axis=1) / np.linalg.norm(centred)
    agreement = np.corrcoef(ranks(true), ranks(cosine))[0, 1]
    assert agreement < 0.97
    best = set(np.argsort(-true)[:100])
    assert len(best & set(np.argsort(-(coefficients @ weights[0]))[:100])) >= 99  # float32 may swap two at the cut
    assert len(best & set(np.argsort(-cosine)[:100])) < 70


def test_fewer_components_are_filled_up_with_zeros() -> None:
    vectors = units(np.random.default_rng(0), 100, 64, 8)
    projection = components_of(vectors, 3)
    assert projection.compress(vectors.reshape(10, 10, 64)).shape == (10, 10, 16)
    assert not projection.compress(vectors)[:, 3:].any()
    weights, bias = projection.linear(vectors[:5])
    assert weights.shape == (5, 16)
    assert bias.shape == (5,)
    assert not weights[:, 3:].any()


def test_a_streaming_fit_finds_the_subspace_and_its_check_says_so() -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install scikit-learn")
    rng = np.random.default_rng(1)
    vectors = units(rng, 3000, 64, 10)
    words = Words(units(rng, len(TEXTS), 64, 64))
    pictures = (vectors[start : start + 100] for start in range(0, 3000, 100))
    found = fit_projection(words, pictures, 16)
    assert found.encoder == "words"
    assert found.basis.shape == (16, 64)
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(16), atol=1e-4)  # float32, after several batches
    assert found.explained[:10].sum() > 0.999
    rebuilt = found.mean + found.compress(vectors) @ found.basis
    np.testing.assert_allclose(rebuilt, vectors, atol=1e-3)  # the mean is of the fitted pictures only, not of all
    assert found.check == {"correlation": 1.0, "top_agreement": pytest.approx(1.0, abs=0.01), "vectors": 600}


def test_the_check_tells_a_poor_fit() -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install scikit-learn")
    rng = np.random.default_rng(2)
    vectors = units(rng, 3000, 64, 60)
    words = Words(units(rng, len(TEXTS), 64, 64))
    pictures = [vectors[start : start + 100] for start in range(0, 3000, 100)]
    few, many = (fit_projection(words, pictures, count).check for count in (2, 16))
    assert few["correlation"] < many["correlation"] < 0.95
    assert few["top_agreement"] < many["top_agreement"] < 0.95


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_pictures_are_refused(count: int) -> None:
    pytest.importorskip("sklearn", reason="needs scikit-learn: pip install scikit-learn")
    vectors = units(np.random.default_rng(0), 100, 64, 8)
    with pytest.raises(SourceError, match="at least 5 pictures"):
        fit_projection(Words(vectors), [vectors] * count, 16)


@pytest.mark.parametrize("count", [0, 17])
def test_a_number_of_components_that_has_no_channels_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"1 to 16, got {count}"):
        fit_projection(Words(np.zeros((20, 64))), [], count)


def test_the_file_holds_all_and_is_only_for_its_encoder(tmp_path: Path) -> None:
    vectors = units(np.random.default_rng(0), 100, 64, 8)
    made = components_of(vectors, 5)
    made = Projection("model abc", made.mean, made.basis, made.explained, {"correlation": 0.5})
    path = tmp_path / "made.npz"
    save_projection(made, path)
    read = load_projection(path, "model abc", 64)
    assert (read.encoder, dict(read.check)) == ("model abc", {"correlation": 0.5})
    for name in ("mean", "basis", "explained"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))
    with pytest.raises(SettingsError, match="fitted for the encoder model abc, not for other"):
        load_projection(path, "other", 64)
    with pytest.raises(SettingsError, match="vectors of 32 numbers"):
        load_projection(path, "model abc", 32)


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04 cut", None])
def test_what_is_no_such_file_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other.npz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"other\.npz") as caught:
        load_projection(path, "any", 64)
    assert "\n" not in str(caught.value)


def test_an_archive_of_other_arrays_or_of_objects_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, mean=np.zeros(4))
    with pytest.raises(SettingsError, match="not a file of foveate fit-pca"):
        load_projection(path, "any", 4)
    np.savez(path, about=np.array([{"a": 1}], object))
    with pytest.raises(SettingsError, match="not a file of foveate fit-pca"):
        load_projection(path, "any", 4)


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    mean, basis = np.full(4, np.nan, np.float32), np.eye(4, dtype=np.float32)
    path = tmp_path / "bad.npz"
    save_projection(Projection("any", mean, basis, np.ones(4, np.float32), {}), path)
    with pytest.raises(SettingsError, match="finite"):
        load_projection(path, "any", 4)
