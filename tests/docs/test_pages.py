"""What the pages refer to exists: links, commands and their flags, modules, the command that runs the tests."""

import ast
import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from foveate.app.arguments import parse_call, run_arguments
from foveate.app.ask.arguments import ask
from foveate.app.console import Console
from foveate.app.corpus.arguments import corpus_arguments
from foveate.app.live.arguments import live_arguments
from foveate.app.main import COMMANDS
from tests.docs.pages import PAGES, ROOT, blocks

LINK = re.compile(r"\]\(([^)\s]+)\)")


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    plain = re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def anchors(text: str) -> set[str]:
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return {slug(heading) for heading in re.findall(r"^#+ (.+)$", prose, re.MULTILINE)}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for link in LINK.findall(PAGES[name]):
        if link.startswith("http"):
            continue
        file, _, anchor = link.partition("#")
        path = (ROOT / name).parent / file if file else ROOT / name
        assert path.exists(), link
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), link


def test_every_experiment_has_a_command_a_table_and_a_row_in_the_summary() -> None:
    sections = re.split(r"^### ", PAGES["docs/experiments.md"], flags=re.MULTILINE)[1:]
    assert len(sections) >= 18
    for section in sections:
        heading = section.splitlines()[0]
        assert "`python -m foveate.bench." in section, heading
        assert "\n|---" in section, heading
        assert f"(experiments.md#{slug(heading)})" in PAGES["docs/claims.md"], heading


def test_the_readme_is_short_and_leads_to_every_page() -> None:
    readme = PAGES["README.md"]
    assert len(readme.splitlines()) <= 270
    linked = {link.partition("#")[0] for link in LINK.findall(readme)}
    assert PAGES.keys() - {"README.md"} <= linked
    assert "sample_videos/overlay.jpg" in linked
    assert (ROOT / "sample_videos" / "overlay.jpg").stat().st_size < 200_000


def test_the_test_command_is_marked_as_ci_takes_it() -> None:
    block = re.search(r"^<!-- test -->\n```sh\n(.+?)\n```$", PAGES["README.md"], re.MULTILINE | re.DOTALL)
    assert block is not None
    assert "make test" in block[1]
    assert PAGES["README.md"].count("<!-- test -->") == 1


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every call of foveate in a shell block: the command, and what is behind it."""
    for name, text in PAGES.items():
        for block in blocks("sh", text):
            for line in block.replace("\\\n", " ").splitlines():
                words = shlex.split(line, comments=True)
                while words and "foveate" in words:
                    words = words[words.index("foveate") + 1 :]
                    end = next((at for at, word in enumerate(words) if word in (">", "|", "&&", "foveate")), len(words))
                    if words[:1] and words[0] in COMMANDS:
                        yield f"{name}: {line.strip()}", words[:end]


CALLS = list(calls())


@pytest.mark.parametrize(("line", "words"), CALLS, ids=[line for line, _ in CALLS])
def test_a_command_line_is_understood(
    line: str, words: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOOR", "rtsp://door/1")
    (tmp_path / "yard").write_text("rtsp://yard/1")
    command, *rest = (word.replace("@/etc/foveate/yard", f"@{tmp_path}/yard") for word in words)
    if command == "run":
        assert run_arguments(rest).addresses
    elif command == "corpus":
        assert corpus_arguments(rest, Console()).addresses
    elif command == "live":
        live_arguments(rest, Console())
    elif command == "ask":
        assert parse_call(ask, rest, "ask")().address


def test_enough_command_lines_were_found() -> None:
    assert {words[0] for _, words in CALLS} >= {"run", "live", "ask", "doctor", "fit-pca"}
    assert len(CALLS) >= 20


@pytest.mark.parametrize("name", PAGES)
def test_a_file_in_the_text_is_there(name: str) -> None:
    for path in re.findall(
        r"(?<![\w./])((?:app|bench|configs|cuda|docs|pipeline|sample_videos|tests)/[\w./-]*\w)", PAGES[name]
    ):
        assert (ROOT / path).exists(), path


def is_there(dotted: str) -> bool:
    """Whether a module, or a name in a module, exists."""
    try:
        if importlib.util.find_spec(dotted):
            return True
    except ModuleNotFoundError:  # what is before the last dot is a module, and no package
        pass
    module, _, name = dotted.rpartition(".")
    return hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("name", PAGES)
def test_a_module_in_the_text_is_there(name: str) -> None:
    for dotted in re.findall(r"(?<![\w./])(foveate(?:\.[A-Za-z_]+)+)", PAGES[name]):
        assert is_there(dotted), dotted


@pytest.mark.parametrize("name", PAGES)
def test_python_examples_import_what_is_there(name: str) -> None:
    for code in blocks("python", PAGES[name]):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("foveate"):
                for alias in node.names:
                    assert is_defined(node.module or "", alias.name), alias.name


def is_defined(module: str, name: str) -> bool:
    """Whether the module has the name; where it needs an extra that is not installed, whether its source defines it."""
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("foveate"):
            raise
        source = Path(importlib.util.find_spec(module).origin).read_text(encoding="utf-8")
        defined = rf"^(?:class|def) {name}\b|^{name}\b|^from \S+ import {name} as {name}$"
        return re.search(defined, source, re.MULTILINE) is not None
    return hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None
