"""The encoder "open_clip": compares queries in words or pictures with dense embeddings of the frame."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from foveate.pipeline.encoders.embedder import DenseEmbedder
from foveate.pipeline.encoders.image_text import ImageTextEncoder, Vectors, picture_vector, unit
from foveate.pipeline.encoders.model import open_model
from foveate.pipeline.encoders.pca import Projection, load_projection
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase
from foveate.pipeline.query.encoder import CompiledQuery
from foveate.pipeline.query.example import example
from foveate.pipeline.query.terms import INPUTS, Term, query_terms
from foveate.pipeline.settings import ClipSettings

CONTRASTS: Final = ("object", "things", "stuff", "texture")
"""Negative prompts that a query is compared with: the canonical phrases of LERF (Kerr et al. 2023)."""


class ClipEncoder:
    """See foveate.pipeline.query.encoder.QueryEncoder.

    The relevance of an embedding f to a query q is the least, over the contrasts k, of the softmax of s q.f against
    s k.f, with the model's logit scale s (Kerr et al. 2023, LERF, section 3.3): the sigmoid of s (q - k).f, which is
    linear in the coefficients. An example picture is compared with the mean of all embeddings instead, since pictures
    are more similar to each other than to any text.
    """

    name: Final = "open_clip"

    def __init__(self, encoder: ImageTextEncoder, projection: Projection, settings: ClipSettings) -> None:
        self._encoder = encoder
        self._projection = projection
        self._settings = settings
        self._contrasts = encoder.encode_texts(CONTRASTS)

    def compile(self, phrases: Sequence[Phrase]) -> CompiledQuery:
        """Compile any words, up to the length that the model reads; the notes list longer queries.

        Raises SourceError if an example cannot be read.
        """
        texts = [phrase.text for phrase in phrases if phrase.image is None]
        vectors = dict(zip(texts, self._encoder.encode_texts(texts), strict=True)) if texts else {}
        terms = [
            self._terms(vectors[phrase.text], self._contrasts)
            if phrase.image is None
            else self._terms(self._example_vector(phrase.image), unit(self._projection.mean)[None])
            for phrase in phrases
        ]
        notes = tuple(
            f"query {text!r}: the model reads only its beginning" for text in texts if self._encoder.cuts(text)
        )
        return CompiledQuery(query_terms(phrases, terms, "sigmoid"), notes)

    def embedder(self, geometry: Geometry) -> DenseEmbedder:
        """A new Embedder, with its own thread."""
        return DenseEmbedder(self._encoder, self._projection, self._settings, geometry)

    def _example_vector(self, path: str) -> Vectors:
        return picture_vector(self._encoder, example(path).filled())

    def _terms(self, vector: Vectors, contrasts: Vectors) -> list[Term]:
        """One term per contrast, of float32[D] and float32[k, D]."""
        weights, biases = self._projection.linear((vector - contrasts) * np.float32(self._encoder.sharpness))
        padded = np.pad(weights, ((0, 0), (0, INPUTS - weights.shape[1])))
        return [(row, float(bias)) for row, bias in zip(padded, biases, strict=True)]


def open_clip_encoder(settings: ClipSettings) -> ClipEncoder:
    """The encoder with the model and the PCA file that the settings name. Raises SettingsError, EngineError."""
    if settings.pca is None:
        raise SettingsError(
            "clip.pca is missing: give the file that `foveate fit-pca PICTURES... --out FILE.npz` made for this model"
        )
    encoder = open_model(settings)
    return ClipEncoder(encoder, load_projection(Path(settings.pca), encoder.id, encoder.dimension), settings)
