"""Compresses embeddings to their principal components, and computes similarity from these."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from foveate.pipeline.encoders.image_text import Vectors
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.npz import npz_arrays

COMPONENTS: Final = 16  # channels clip0 to clip15
_FORMAT: Final = 1
_LARGEST: Final = 2**24  # bytes: 16 vectors of more than 100,000 numbers


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """f is about ``mean`` + ``basis``^T c for unit vectors f of the encoder ``encoder``."""

    encoder: str  # its id
    mean: Vectors  # float32[D]
    basis: Vectors  # float32[n, D], n at most COMPONENTS; orthonormal rows
    explained: Vectors  # float32[n]: share of the variance that each component explains
    check: Mapping[str, float]  # quality of the fit on held-out vectors

    def compress(self, vectors: Vectors) -> Vectors:
        """Coefficients c = basis (f - mean): float32[..., D] -> [..., COMPONENTS], zero beyond the basis."""
        coefficients = (vectors - self.mean) @ self.basis.T
        padding = [(0, 0)] * (coefficients.ndim - 1) + [(0, COMPONENTS - len(self.basis))]
        return np.pad(coefficients, padding).astype(np.float32)

    def linear(self, directions: Vectors) -> tuple[Vectors, Vectors]:
        """For directions d, float32[n, D]: weights [n, COMPONENTS] and biases [n], so that d.f ~ weights.c + bias.

        d.f ~ d.mean + (basis d).c, since f ~ mean + basis^T c. The mean keeps its part: a cosine of basis (d - mean)
        with c would lose it.
        """
        weights = directions @ self.basis.T
        padded = np.pad(weights, ((0, 0), (0, COMPONENTS - len(self.basis))))
        return padded.astype(np.float32), np.asarray(directions @ self.mean, np.float32)


def save_projection(projection: Projection, path: Path) -> None:
    """Write an .npz file. Raises OSError."""
    about = {"format": _FORMAT, "encoder": projection.encoder, "check": dict(projection.check)}
    with path.open("wb") as file:
        np.savez(
            file,
            mean=projection.mean,
            basis=projection.basis,
            explained=projection.explained,
            about=np.frombuffer(json.dumps(about).encode(), np.uint8),
        )


def load_projection(path: Path, encoder: str, dimension: int) -> Projection:
    """Read what ``save_projection`` wrote, for the encoder with that id and dimension.

    Raises SettingsError if the file cannot be read, is of another kind, or was fitted for another encoder.
    """
    arrays = _read(path)
    try:
        about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        projection = Projection(
            str(about["encoder"]),
            np.asarray(arrays["mean"], np.float32),
            np.asarray(arrays["basis"], np.float32),
            np.asarray(arrays["explained"], np.float32),
            {str(name): float(value) for name, value in about["check"].items()},
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise SettingsError(f"{path} is not a file of foveate fit-pca: {type(error).__name__} {error}") from None
    _refuse(path, projection, encoder, dimension)
    return projection


def _read(path: Path) -> dict[str, Any]:
    try:
        return npz_arrays(path, most=_LARGEST)
    except OSError as error:
        raise SettingsError(f"cannot read the PCA file {path}: {error.strerror or 'it is no .npz file'}") from None
    except ValueError as error:
        raise SettingsError(f"{path} is not a file of foveate fit-pca: {error}") from None


def _refuse(path: Path, projection: Projection, encoder: str, dimension: int) -> None:
    mean, basis, explained = projection.mean, projection.basis, projection.explained
    if projection.encoder != encoder:
        raise SettingsError(f"{path} was fitted for the encoder {projection.encoder}, not for {encoder}; fit it anew")
    count = len(basis) if basis.ndim == 2 else 0
    fits = mean.shape == (dimension,) and basis.shape == (count, dimension) and explained.shape == (count,)
    if not fits or not 1 <= count <= COMPONENTS or not np.isfinite([*mean, *basis.ravel()]).all():
        shapes = f"mean {mean.shape}, basis {basis.shape}"
        raise SettingsError(f"{path} must hold a finite mean and 1 to 16 vectors of {dimension} numbers, got {shapes}")
