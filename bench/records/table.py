"""A record as tables: on standard error, or as Markdown."""

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_FILE_WIDTH = 160  # characters; a file or a pipe has none of its own
_FIGURE = re.compile(r"(\**[+-]?\d[\d.,]*%?\**)?")  # bold or not, or none
_NAMES = ("", "case", "stage", "figure", "group", "value")


def standard_error() -> Console:
    """Standard error; nothing is shown where it is closed."""
    console = Console(stderr=True, highlight=False, soft_wrap=True, quiet=sys.stderr is None)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def say(text: str) -> None:
    """Print on standard error, whatever brackets are in the text."""
    standard_error().print(text, markup=False)


def print_record(record: Mapping[str, Any], console: Console) -> None:
    """Print the speeds, where the time goes, and what was red."""
    cases = [case for case in record["cases"] if "decode_fps" in case]
    if cases:
        console.print(_speeds(cases))
        console.print(_stages(cases))
    for case in cases:
        if "still_share" in case:
            costs = f"{case['still_frame_ms']:.2f} ms of a keyframe's {case['keyframe_ms']:.2f} ms"
            console.print(Text(f"{case['name']}: a still frame costs {costs}, {case['still_share']:.1%}"))
    for red in record["red"]:
        console.print(Text.assemble((f"{red['name']}: red, no numbers: ", "red"), red["reason"]))


def _speeds(cases: Sequence[Mapping[str, Any]]) -> Table:
    table = plain_table("case", "size", "frames", "decode fps", "pipeline fps", "ratio", "tokens/frame", "changed")
    for case in cases:
        table.add_row(
            Text(case["name"]),
            f"{case['width']}x{case['height']}",
            str(case["frames"]),
            f"{case['decode_fps']:.1f}",
            f"{case['pipeline_fps']:.1f}",
            f"{case['ratio']:.2f}",
            f"{case['tokens_per_frame']:.0f}",
            f"{case['changed']:.0%}",
        )
    return table


def _stages(cases: Sequence[Mapping[str, Any]]) -> Table:
    table = plain_table("case", "stage", "p50 ms", "p90 ms", "p99 ms", "busy", "processor")
    for case in cases:
        for place, stage in enumerate(case["stages"]):
            times = [f"{stage[name]:.2f}" for name in ("p50_ms", "p90_ms", "p99_ms")]
            name = "" if place else case["name"]
            table.add_row(Text(name), stage["name"], *times, f"{stage['busy']:.0%}", f"{stage['cpu']:.0%}")
    return table


def plain_table(*headings: str) -> Table:
    """A table without lines; columns of names to the left, of figures to the right."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in headings:
        table.add_column(heading, justify="left" if heading in _NAMES else "right", no_wrap=True)
    return table


def markdown(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown, without a line feed at its end; columns of figures to the right."""
    held = list(rows)
    ruler = ("---:" if all(map(_FIGURE.fullmatch, column)) else "---" for column in zip(*held, strict=True))
    first, *others = (f"| {' | '.join(row)} |" for row in (heading, *held))
    return "\n".join([first, f"|{'|'.join(ruler if held else ['---'] * len(heading))}|", *others])


def methods_table(
    corner: str, cases: Iterable[Mapping[str, Any]], column: str, cell: Callable[[Mapping[str, Any]], str]
) -> str:
    """Markdown with a row for each method, and a column for each value that the cases have at ``column``."""
    held = {(case["method"], case[column]): cell(case) for case in cases}
    methods, columns = (dict.fromkeys(pair[place] for pair in held) for place in (0, 1))
    rows = ((method, *(held[method, value] for value in columns)) for method in methods)
    return markdown((corner, *map(str, columns)), rows)
