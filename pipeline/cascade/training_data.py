"""Training data of a linear scorer: per token, the channels under it and the attention of a model to it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.cascade.coverage import Coverage
from foveate.pipeline.cascade.feedback import checked_attention
from foveate.pipeline.cascade.linear_scorer import LinearScorer, check_weighable
from foveate.pipeline.cascade.problem import Tokens
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.npz import npz_arrays
from foveate.pipeline.selection import Selection

_HELD_OUT = 5  # every fifth frame is held out for validation


class Table(NamedTuple):
    """Training data as arrays: N tokens, C channels."""

    channels: tuple[str, ...]
    values: NDArray[np.float32]  # [N, C]: mean of each channel over the cells under the token
    attention: NDArray[np.float32]  # [N], in [0, 1]
    frame: NDArray[np.int64]  # [N]: the token's frame


class FittedScorer(NamedTuple):
    """A scorer, and its validation result."""

    scorer: LinearScorer
    correlation: float | None  # Pearson's, over the tokens of the frames held out; None where there were too few


class TrainingData:
    """Collects Selections with their ``maps``, and the attention given to their tokens."""

    def __init__(self, channels: Sequence[str]) -> None:
        """``channels`` are the names of maps that every Selection holds.

        Raises ValueError where they are none, repeated, or not such as the linear scorer weighs.
        """
        self._channels = tuple(channels)
        _check_channels(self._channels)
        self._values: list[NDArray[np.float32]] = []
        self._attention: list[NDArray[np.float32]] = []

    def add(self, selection: Selection, attention: NDArray[np.floating]) -> None:
        """Add the ``attention``, float[K] in [0, 1], of a model to the tokens of ``selection``.

        Raises ValueError for weights of another length or range, and for a Selection without the maps.
        """
        weights = checked_attention(attention, len(selection))
        lacking = [name for name in self._channels if name not in selection.maps]
        if lacking:
            raise ValueError(f"the selection has no map {lacking[0]!r}; open the stream with it among maps")
        tokens = Tokens.at_centres(selection.lod, selection.x, selection.y)
        coverage = Coverage(tokens, Geometry(selection.width, selection.height))
        self._values.append(coverage.means(np.stack([selection.maps[name] for name in self._channels])).T)
        self._attention.append(weights)

    def table(self) -> Table:
        """Everything added so far."""
        counts = [len(each) for each in self._attention]
        return Table(
            self._channels,
            np.concatenate([np.empty((0, len(self._channels)), np.float32), *self._values]),
            np.concatenate([np.empty(0, np.float32), *self._attention]),
            np.repeat(np.arange(len(counts), dtype=np.int64), counts),
        )

    def save(self, path: str | Path) -> None:
        """Write an NPZ file of that very name, which ``foveate fit-scorer`` reads: the arrays of Table.

        Raises OSError.
        """
        table = self.table()
        with Path(path).open("wb") as file:  # NumPy adds .npz to a name
            np.savez_compressed(file, **{**table._asdict(), "channels": np.array(table.channels)})


def _check_channels(names: tuple[str, ...]) -> None:
    if not names:
        raise ValueError("there must be at least one channel")
    if len(set(names)) < len(names):
        raise ValueError(f"channels must differ, got {', '.join(names)}")
    for name in names:
        check_weighable(name)


def read_training_data(paths: Iterable[Path]) -> Table:
    """The training data of all NPZ files ``paths``, which must hold the same channels. Raises SettingsError."""
    tables: list[Table] = []
    for path in paths:
        table = _read(path)
        if tables and table.channels != tables[0].channels:
            raise SettingsError(f"{path} holds other channels than the first file; fit them separately")
        frames = 0 if not tables or not len(tables[-1].frame) else int(tables[-1].frame[-1]) + 1
        tables.append(table._replace(frame=table.frame + frames))
    if not tables:
        raise SettingsError("there must be at least one file of training data")
    columns = zip(*(table[1:] for table in tables), strict=True)
    return Table(tables[0].channels, *(np.concatenate(column) for column in columns))


def _read(path: Path) -> Table:
    try:
        content = npz_arrays(path)
        arrays = [content[name] for name in Table._fields]
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except KeyError as error:
        raise SettingsError(
            f"{path} holds no training data: there is no array {error}; TrainingData.save writes them"
        ) from None
    except ValueError as error:
        raise SettingsError(f"{path} holds no training data: {error}; TrainingData.save writes them") from None
    if not _fit_together(*arrays):
        raise SettingsError(f"{path} holds no training data: its arrays do not fit together")
    table = Table(tuple(arrays[0].tolist()), *arrays[1:])
    try:
        _check_channels(table.channels)
    except ValueError as error:
        raise SettingsError(f"{path} cannot be used for training: {error}") from None
    if not (np.isfinite(table.values).all() and np.isfinite(table.attention).all()):
        raise SettingsError(f"{path} holds numbers that are not finite")
    return table


def _fit_together(channels: NDArray[Any], values: NDArray[Any], attention: NDArray[Any], frame: NDArray[Any]) -> bool:
    """True where shapes and kinds are those of Table."""
    kinds = (channels.dtype.kind, values.dtype.kind, attention.dtype.kind, frame.dtype.kind)
    return (
        all(kind in allowed for kind, allowed in zip(kinds, ("U", "fiu", "fiu", "iu"), strict=True))
        and channels.ndim == attention.ndim == 1
        and values.shape == (len(attention), len(channels))
        and frame.shape == attention.shape
    )


def fit_scorer(table: Table, ridge: float = 1e-3) -> FittedScorer:
    """The weights that predict attention best: ridge regression (Hoerl and Kennard 1970) on standardised channels.

    ``ridge`` is the penalty per token on the squared weights of channels of unit variance; the bias is free. Channels
    that never vary get no weight. The scorer is fitted to everything; the correlation is that of one fitted to four
    fifths of the frames, on the rest. Raises SettingsError where there is nothing to learn from.
    """
    varies = table.values.std(axis=0) > 1e-6
    if len(table.attention) < 2 or not varies.any() or table.attention.std() == 0:
        raise SettingsError("there is nothing to learn: attention, or every channel, is the same for all tokens")
    held = table.frame % _HELD_OUT == _HELD_OUT - 1
    correlation = None
    if min(held.sum(), (~held).sum()) >= 2:
        weights, bias = _regression(table.values[~held], table.attention[~held], ridge)
        predicted = table.values[held] @ weights + bias
        if predicted.std() > 0 and table.attention[held].std() > 0:
            correlation = float(np.corrcoef(predicted, table.attention[held])[0, 1])
    weights, bias = _regression(table.values, table.attention, ridge)
    named = {name: float(weight) for name, weight in zip(table.channels, weights, strict=True)}
    return FittedScorer(LinearScorer(named, float(bias)), correlation)


def _regression(
    values: NDArray[np.float32], attention: NDArray[np.float32], ridge: float
) -> tuple[NDArray[np.float64], float]:
    """Weights [C] of the channels as they are, and the bias."""
    mean, spread = values.mean(axis=0, dtype=np.float64), values.std(axis=0, dtype=np.float64)
    varies = spread > 1e-6
    scaled = (values[:, varies] - mean[varies]) / spread[varies]
    level = float(attention.mean(dtype=np.float64))
    penalty = ridge * len(values) * np.eye(scaled.shape[1])
    weights = np.zeros(values.shape[1])
    weights[varies] = np.linalg.solve(scaled.T @ scaled + penalty, scaled.T @ (attention - level)) / spread[varies]
    return weights, level - float(weights @ mean)
