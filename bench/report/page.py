"""``foveate bench report``: records as one HTML page that needs no other file, no network and no script."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import Annotated, Final

from tyro.conf import Positional, arg

from foveate.bench.entry import check_folders
from foveate.bench.records.reading import Record, commit, machine, read_record, title
from foveate.bench.records.writing import write_text
from foveate.bench.report.sections import sections
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.exits import Exit

_TEMPLATE: Final = Path(__file__).with_name("page.html")


def report(
    records: Annotated[Positional[tuple[str, ...]], arg(metavar="RECORD.json ...", help="Records of benchmarks.")],
    out: Annotated[str, arg(metavar="FILE.html", help="Where the page goes.", aliases=["-o"])],
) -> int:
    """Draw records of benchmarks as one page of HTML, which needs no other file."""
    if not records:
        raise SettingsError("RECORD.json is missing; see foveate bench report --help")
    check_folders(out=out)
    write_page([read_record(Path(name)) for name in records], Path(out))
    return Exit.DONE


def write_page(records: Sequence[Record], path: Path) -> None:
    """Write the page of ``records``. Raises SinkError."""
    write_text(path, page(records))


def page(records: Sequence[Record]) -> str:
    """The page of ``records``, in their order."""
    contents = (f'<li><a href="#r{place}">{_title(record)}</a></li>' for place, record in enumerate(records))
    shown = (_section(place, record) for place, record in enumerate(records))
    return Template(_TEMPLATE.read_text("utf-8")).substitute(contents="".join(contents), sections="".join(shown))


def _title(record: Record) -> str:
    return escape(title(record).capitalize())


def _section(place: int, record: Record) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record.get("versions", {}).items())
    of = f"Commit {commit(record)}" if record.get("commit") else "No commit"
    about = f"{of}; {machine(record)}; {versions}"
    unfinished = "" if record.get("complete", True) else '<p class="bad">Unfinished: some cases are missing.</p>'
    head = f'<section id="r{place}"><h2>{_title(record)}</h2><p class="about">{escape(about)}</p>'
    return f"{head}{unfinished}{''.join(sections(record))}</section>"
