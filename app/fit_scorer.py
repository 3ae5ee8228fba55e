"""``foveate fit-scorer``: learn the weights of the linear scorer from attention that a model paid to tokens."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from foveate.app.standard_error import standard_error
from foveate.pipeline.cascade.linear_scorer import write_scorer
from foveate.pipeline.cascade.training_data import FittedScorer, Table, fit_scorer, read_training_data
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit
from foveate.pipeline.sinks.destination import write_whole

_FILES = "Files of TrainingData.save: the channels under each token, and the attention that it received."
_OUT = "The file to write, for --score.scorer linear --score.weights FILE.toml."
_RIDGE = "Ridge penalty on the squared weights, per token: a higher one shrinks them more."
_MOST_RIDGE = 1e12  # weights are 0 long before


def fit(
    files: Annotated[Positional[tuple[str, ...]], arg(metavar="FILE.npz ...", help=_FILES)],
    out: Annotated[str, arg(metavar="FILE.toml", help=_OUT, aliases=["-o"])],
    ridge: Annotated[float, arg(metavar="X", help=_RIDGE)] = 1e-3,
) -> int:
    """Learn the weights of the linear scorer from attention fed back by a model.

    The weights predict, from the channels under a token, the attention that the model pays to it.
    """
    if not 0 < ridge <= _MOST_RIDGE:
        raise SettingsError(f"--ridge must be above 0 and at most {_MOST_RIDGE:g}, got {ridge}")
    if Path(out).suffix.lower() != ".toml":
        raise SettingsError(f"--out {out!r} must end in .toml")
    table = read_training_data(Path(name) for name in files)
    learned = fit_scorer(table, ridge)
    said = _comment(table, learned)
    write_whole(Path(out), lambda part: write_scorer(part, learned.scorer, said))
    print(said, file=standard_error(), flush=True)
    return Exit.DONE


def _comment(table: Table, learned: FittedScorer) -> str:
    frames = len(set(table.frame.tolist()))
    lines = [f"fitted on {len(table.attention)} tokens of {frames} frames, {len(table.channels)} channels"]
    if learned.correlation is not None:
        lines.append(f"correlation with attention in frames held out: {learned.correlation:.3f}")
    return "\n".join(lines)
