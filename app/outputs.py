"""The files that a run writes: the name of each output for each video."""

import os
from collections import Counter
from collections.abc import Sequence

from foveate.app.arguments import PLACE, RunArguments
from foveate.app.standard_output import default_outputs
from foveate.pipeline.corpus.names import Input
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks import open_overlay, open_report, open_sheet, open_sink
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT


class Outputs:
    """The outputs of all videos of a run; none is written twice."""

    def __init__(self, arguments: RunArguments, inputs: Sequence[Input]) -> None:
        """Raises SettingsError where two outputs would be one file, or a name's suffix is unknown."""
        self.tokens = tokens_of(arguments)
        if len(inputs) > 1:
            outputs = (*self.tokens, *pictures_of(arguments)) or default_outputs(len(inputs))
            _refuse_shared(outputs, len(inputs))
        named = [arguments.named(each.name) for each in inputs]
        self.files = [name for each in named for name in (*tokens_of(each), *pictures_of(each))]
        for each in named:
            _check_suffixes(each)
        _refuse_equal(self.files)


def tokens_of(arguments: RunArguments) -> tuple[str, ...]:
    """The outputs that hold tokens: standard output, if it is no terminal, where there is no output at all."""
    return arguments.out or (() if pictures_of(arguments) else default_outputs())


def pictures_of(arguments: RunArguments) -> list[str]:
    """The outputs that are pictures or videos."""
    sheet = None if arguments.sheet is None else arguments.sheet.path
    return [name for name in (arguments.overlay, arguments.report, sheet) if name is not None]


def _check_suffixes(arguments: RunArguments) -> None:
    for name in tokens_of(arguments):
        open_sink(name)
    if arguments.overlay is not None:
        open_overlay(arguments.overlay)
    if arguments.report is not None:
        open_report(arguments.report)
    if arguments.sheet is not None:
        open_sheet(arguments.sheet.path, arguments.sheet.layout, arguments.sheet.frame)


def _refuse_shared(names: Sequence[str], sources: int) -> None:
    """Raise SettingsError for an output that all sources would share."""
    for name in names:
        if name == STANDARD_OUTPUT:
            raise SettingsError(
                f"the JSON lines of {sources} videos cannot share standard output; give --out-dir DIR, or names with "
                f"{PLACE}, such as --out '{PLACE}.jsonl'"
            )
        if PLACE not in name:
            raise SettingsError(
                f"output {name!r} must hold {PLACE}, where the name of each video goes: there are {sources} videos"
            )


def _refuse_equal(names: Sequence[str]) -> None:
    for place, count in Counter(map(os.path.realpath, names)).items():
        if count > 1:
            name = next(name for name in names if os.path.realpath(name) == place)
            raise SettingsError(f"--out {name!r} is named twice; give every output a file of its own")
