"""A suite's record in tables on standard error."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foveate.bench.cases.quality import markdown_table
from foveate.bench.records.reading import Case
from foveate.bench.records.table import plain_table, print_record
from foveate.bench.suites.choice import choices


def print_suite(record: Mapping[str, Any], console: Console) -> None:
    """Print the figures of each kind of case, and failed checks."""
    cases: Sequence[Case] = record["cases"]
    if record["suite"] == "quality" and cases:
        console.print(markdown_table(record))
    curves = [case for case in cases if "curve" in case]
    if curves:
        console.print(_curves(curves))
    grouped = [case for case in cases if "group" in case]
    if grouped:
        console.print(_choices(grouped))
    print_record(record, console)


def _curves(cases: Sequence[Case]) -> Table:
    table = plain_table("case", "CPU ms/frame", "fps, all", "tokens/frame", "recomputed")
    for case in cases:
        table.add_row(
            Text(case["name"]),
            f"{case['cpu_ms']:.2f}",
            f"{case['pipeline_fps']:.1f}" if "pipeline_fps" in case else "",
            f"{case['tokens_per_frame']:.0f}" if "tokens_per_frame" in case else "",
            f"{case['recomputed']:.0%}" if "recomputed" in case else "",
        )
    return table


def _choices(cases: Sequence[Case]) -> Table:
    table = plain_table("group", "value", "", "PSNR", "correlation", "CPU time")
    for choice in choices(cases):
        values = dict.fromkeys((*choice.gains, *choice.agreements, *choice.costs))
        for place, value in enumerate(values):
            marks = [name for name, marked in (("default", choice.default), ("chosen", choice.best)) if marked == value]
            table.add_row(
                Text("" if place else choice.group),
                Text(value),
                ", ".join(marks),
                f"{choice.gains[value]:+.2f} dB" if value in choice.gains else "",
                f"{choice.agreements[value]:.3f}" if value in choice.agreements else "",
                f"{choice.costs[value]:.2f}" if value in choice.costs else "",
            )
    return table
