"""The command line of ``foveate run``, parsed and checked."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile
from pathlib import PurePath
from typing import Any, Protocol

import tyro
from pydantic import ValidationError
from tyro.conf import HelptextFromCommentsOff

from foveate.app.flags import (
    LAYOUT,
    SHORT,
    TIMES,
    chosen,
    named_in,
    run_flags,
    shortened,
    spelling,
    spellings,
    value_of,
)
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.flag_help import with_flags_of
from foveate.pipeline.layouts import Layout, load_layout
from foveate.pipeline.presets import load_preset
from foveate.pipeline.settings import MOST_FRAMES, Settings
from foveate.pipeline.settings_errors import check_count, complaint, nearest
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT, is_mqtt

_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_BEFORE_END = re.compile(r"-[\d.]")
_RULE = re.compile(r"[-─]{4}")  # in tyro's boxes, which are drawn in ASCII where standard output is not "utf-8"
_NO_SOURCE = "Missing value for argument 'address'"  # of ``foveate ask``
_TOO_MANY_DIGITS = "Exceeds the limit"  # of what Python reads as a number
_NO_NUMBER = re.compile(r"Error parsing (?:-\w/)?(-\S+): .*(?:for (int)\(\) with base 10|string to float): ('.*?')$")
_LONG_WORD = re.compile(r"(\S{50})(?:\S| (?=\S{40})){20,}")  # which the box has broken into rows
_TYRO_COMPLETION = ("--tyro-print-completion", "--tyro-write-completion")
_STAND_IN = "SOURCE"
_MARKERS = (HelptextFromCommentsOff,)  # else it looks for comments in the source of each


PLACE = "{}"  # in an output's name, stands for the name of the video, or the number of the live source
_IN_FOLDER = "{}.jsonl"  # what --out-dir is for by itself


class Flags(Protocol):
    """One of ``flags.run_flags`` and its like."""

    def __call__(self, preset: Settings, named: str | None = None, /) -> type[Any]: ...


@dataclass(frozen=True, slots=True)
class Sheet:
    """A picture of the channels of one frame."""

    path: str
    frame: int
    layout: Layout


@dataclass(frozen=True, slots=True)
class RunArguments:
    """One ``foveate run``."""

    addresses: tuple[str, ...]
    settings: Settings
    out: tuple[str, ...] = ()
    overlay: str | None = None
    quiet: bool = False
    sheet: Sheet | None = None
    report: str | None = None
    encode: str | None = None
    out_dir: str | None = None

    def named(self, name: str) -> RunArguments:
        """The same for one video: in each output {} becomes ``name``, and files go to the folder for outputs."""

        def place(output: str) -> str:
            if output == STANDARD_OUTPUT or is_mqtt(output):
                return output.replace(PLACE, name)
            return str(PurePath(self.out_dir or "", output.replace(PLACE, name)))

        return replace(
            self,
            out=tuple(map(place, self.out)),
            overlay=self.overlay and place(self.overlay),
            report=self.report and place(self.report),
            sheet=self.sheet and replace(self.sheet, path=place(self.sheet.path)),
        )


def run_arguments(arguments: Sequence[str]) -> RunArguments:
    """Parse the arguments of ``foveate run``. Raises SettingsError; SystemExit(0) after printing the help."""
    parsed, settings = parsed_settings(run_flags, arguments, "run")
    if not parsed.addresses:
        raise SettingsError("SOURCE is missing; see foveate run --help")
    out = tuple(name for names in parsed.out for name in names)
    sheet = _sheet(parsed, settings.source.frames)
    alone = not (out or parsed.overlay or parsed.report)
    if sheet is not None:
        settings = _showing(settings, sheet, alone=alone)
    elif alone and parsed.out_dir is not None:
        out = (_IN_FOLDER,)
    return RunArguments(
        parsed.addresses,
        settings,
        out,
        parsed.overlay,
        parsed.quiet,
        sheet,
        parsed.report,
        parsed.output.encode,
        parsed.out_dir,
    )


def _sheet(parsed: Any, frames: int | None) -> Sheet | None:
    """The channel picture to draw, of a source of which at most ``frames`` are read."""
    asked = parsed.output
    layout = load_layout(asked.layout)
    check_count("show-frame", asked.show_frame, 0, MOST_FRAMES - 1)
    if asked.show_channels is None:
        if asked.show_frame or asked.layout != LAYOUT:
            raise SettingsError("--show-frame and --layout need --show-channels FILE, where the picture goes")
        return None
    if frames is not None and asked.show_frame >= frames:
        raise SettingsError(f"--show-frame {asked.show_frame} is not among the {frames} of --frames, counted from 0")
    return Sheet(asked.show_channels, asked.show_frame, layout)


def _showing(settings: Settings, sheet: Sheet, *, alone: bool) -> Settings:
    """The settings with the maps that the sheet shows; ``alone``: no frame after it is needed."""
    tree = settings.model_dump()
    tree["maps"] = tuple(dict.fromkeys((*settings.maps, *sheet.layout, "score")))
    if alone:
        tree["source"]["frames"] = min(sheet.frame + 1, settings.source.frames or sheet.frame + 1)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        raise SettingsError(complaint(error, spelling)) from error


def parsed_settings(flags: Flags, arguments: Sequence[str], command: str) -> tuple[Any, Settings]:
    """The arguments of ``foveate <command>`` as an instance of ``flags(preset)``, and the Settings in it.

    Raises as run_arguments does.
    """
    arguments = list(_with_negatives(_with_times(shortened(arguments))))
    config = _config_in(arguments)
    preset = load_preset(config)
    parsed = _parsed_by(flags, preset, arguments, command)
    lists = {f"--{name.replace('_', '-')}": value_of(parsed, (name,)) for name in ("query", "query_image", "maps")}
    for flag, values in {**lists, "--out": parsed.out}.items():
        if isinstance(values, tuple) and () in values:
            raise SettingsError(f"{flag} needs a value behind it, beside SOURCE; see foveate {command} --help")
    if parsed.config != config:
        raise SettingsError(f"write --config with a space or = before its value, {parsed.config!r}")
    try:
        settings = Settings.model_validate(chosen(parsed, preset))
    except ValidationError as error:
        raise SettingsError(complaint(error, spelling)) from error
    return parsed, settings


def _parsed_by(flags: Flags, preset: Settings, arguments: Sequence[str], command: str) -> Any:
    """An instance of ``flags(preset)``, by way of the few flags that are named where that does."""
    if not {"-h", "--help"} & set(arguments):
        parsed, box = _asked_of_tyro(flags(preset, named_in(arguments)), arguments, command)
        if not box:
            return parsed
    return parse(flags(preset), arguments, command)


def parse_call(target: Callable[..., Any], arguments: Sequence[str], command: str) -> Callable[[], Any]:
    """The call of ``target`` that ``arguments``, the ones behind ``foveate <command>``, ask for.

    The parameters of ``target`` are the flags, its docstring is the help. Raises as parse does.
    """

    def later(*positional: Any, **named: Any) -> Callable[[], Any]:
        return functools.partial(target, *positional, **named)

    call: Callable[[], Any] = parse(with_flags_of(target, later), _with_times(arguments), command)
    return call


def parse(target: Callable[..., Any], arguments: Sequence[str], command: str) -> Any:
    """Let tyro call ``target`` with ``arguments``, the ones behind ``foveate <command>``.

    Raises SettingsError, one line instead of tyro's box; SystemExit(0) after printing the help.
    """
    parsed, box = _asked_of_tyro(target, arguments, command)
    if _NO_SOURCE in box:  # perhaps because a flag before it is unknown, which tyro tells where there is one
        box = _asked_of_tyro(target, [_STAND_IN, *arguments], command)[1] or box
    if box:
        known = spellings(command) if command in ("run", "live", "corpus") else _parameters(target)
        raise SettingsError(f"{_one_line(box, known)}; see foveate {command} --help")
    return parsed


def _asked_of_tyro(target: Callable[..., Any], arguments: Sequence[str], command: str) -> tuple[Any, str]:
    """What tyro makes of the arguments, and the box with its error message, empty if there is none."""
    if arguments and arguments[0].replace("_", "-") in _TYRO_COMPLETION:  # which know one command alone
        raise SettingsError(f"unknown option {arguments[0]}; see foveate completion --help")
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            return tyro.cli(target, prog=f"foveate {command}", args=list(arguments), config=_MARKERS), ""
    except SystemExit as end:
        if not end.code:
            raise
        return None, said.getvalue()


def _parameters(target: Callable[..., Any]) -> list[str]:
    """The flags of a function's parameters."""
    return ["--" + name.replace("_", "-") for name in inspect.signature(target).parameters]


def _with_times(arguments: Sequence[str]) -> list[str]:
    """The arguments, with times before the end (``-1:00``) joined to their flags."""
    joined: list[str] = []
    for argument in arguments:
        if joined and joined[-1] in TIMES and _BEFORE_END.match(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _with_negatives(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments, with each value of --query joined to it, so that ``-sky`` is not taken for a flag."""
    asking = False
    for argument, following in pairwise([*arguments, None]):
        assert argument is not None
        if _is_flag(argument):
            asking = argument == "--query"
            if not asking or following is None or _is_flag(following):
                yield argument
        else:
            yield f"--query={argument}" if asking else argument


def _is_flag(argument: str) -> bool:
    """True for --long and the short flags there are, but not for ``-sky``."""
    name = argument.partition("=")[0]
    return name[:2] == "--" or name in ("-h", *SHORT.values())


def _config_in(arguments: Sequence[str]) -> str | None:
    """The value of --config, which is needed before the others are parsed: it sets their defaults."""
    flags = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    found = None
    for flag, following in pairwise([*flags, None]):
        name, equals, value = (flag or "").partition("=")
        if name in ("--config", "-c"):
            found = value if equals else following
    return found


def _one_line(box: str, known: Sequence[str]) -> str:
    """The statement at the top of one of tyro's boxes."""
    rows = dropwhile(_RULE.search, _ANSI.sub("", box).splitlines()[1:])  # the first row is the title
    said = " ".join(row.strip("│ ") for row in takewhile(lambda row: not _RULE.search(row), rows))
    said = _LONG_WORD.sub(r"\1...", said)
    number = _NO_NUMBER.search(said)
    if number is not None:
        return f"{number[1]} must be a {'whole ' if number[2] == 'int' else ''}number, got {number[3]}"
    if _TOO_MANY_DIGITS in said:
        return f"{said.removeprefix('Error parsing ').partition(': ')[0]} has thousands of digits"
    kind, _, rest = said.partition(": ")
    word = rest.split(", ")[0]
    if kind == "Unrecognized options":
        if word[:1] == "-" and os.path.exists(word):  # noqa: PTH110 - pathlib raises where a name is too long
            return f"unknown option {word}; for the file of that name write ./{word}"
        hint = nearest(word, [flag for flag in known if flag != word]).rstrip("? ")
        return f"unknown option {word}" + (f"; {hint}?" if hint else "") if word[:1] == "-" else f"unexpected {word!r}"
    if kind.startswith("Missing from"):
        first, *others = rest.split()
        return f"{next((word for word in others if word[:2] == '--'), first) if len(first) == 2 else first} is missing"
    if _NO_SOURCE in said:
        return "SOURCE is missing"
    said = re.sub(r"(value for) argument '(?:-\w/)?(-\S+)'. Expected 1 values", r"\1 \2", said)
    return said[:1].lower() + said[1:].rstrip(".")
