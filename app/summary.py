"""The summary of a run on standard error."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foveate.app.standard_error import standard_error
from foveate.app.tally import Tally
from foveate.pipeline.timing import StageReport


def print_summary(tally: Tally, stages: Sequence[StageReport], outputs: Sequence[str]) -> None:
    """Print counts, where the time of each stage went, losses, and where the outputs are."""
    console = Console(file=standard_error(), highlight=False, soft_wrap=True)
    for line in _lines(tally):
        console.print(line)
    if stages:
        console.print(_stage_table(stages, tally.seconds))
    for output in outputs:
        console.print(Text.assemble("wrote ", (output, "bold")))


def print_several(total: Tally, done: int, videos: int) -> None:
    """Print counts over several videos, of which ``done`` could be read."""
    console = Console(file=standard_error(), highlight=False, soft_wrap=True)
    for line in (Text(f"{done} of {videos} videos done", style="bold"), *_lines(total)):
        console.print(line)


def _lines(tally: Tally) -> list[Text]:
    return [
        Text.assemble(
            (f"{tally.frames} frame{'' if tally.frames == 1 else 's'}", "bold"),
            f" in {tally.seconds:.1f} s, ",
            (f"{tally.fps:.1f} fps", "bold cyan"),
            f"; {tally.keyframes} keyframe{'' if tally.keyframes == 1 else 's'}",
        ),
        Text(
            f"{tally.tokens} tokens, {tally.mean(tally.tokens):.1f} a frame; "
            f"changed {tally.mean(tally.changed):.1%} of tiles, recomputed {tally.mean(tally.recomputed):.1%} of cells"
        ),
    ]


def _stage_table(stages: Sequence[StageReport], seconds: float) -> Table:
    """Milliseconds per frame; shares are of the run's wall-clock time."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage")
    for heading in ("p50 ms", "p90 ms", "p99 ms", "busy", "processor", "waits for input", "for room"):
        table.add_column(heading, justify="right")
    for stage in stages:
        times = [f"{1000 * value:.2f}" for value in (stage.p50, stage.p90, stage.p99)]
        parts = (stage.busy, stage.busy_cpu, stage.waiting_input, stage.waiting_room)
        table.add_row(stage.name, *times, *(f"{part / seconds:.0%}" if seconds else "-" for part in parts))
    return table
