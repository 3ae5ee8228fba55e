"""Flags, presets, and the one line that says what is wrong with them."""

import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from foveate.app.arguments import parse_call, parsed_settings, run_arguments
from foveate.app.flags import live_flags, named_in, run_flags, spelling, spellings
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.presets import load_preset, presets
from foveate.pipeline.settings import Settings, SourceSettings
from foveate.pipeline.settings_errors import leaves
from foveate.pipeline.settings_texts import text_of


def test_no_flags_are_the_defaults() -> None:
    arguments = run_arguments(["clip.mp4"])
    assert arguments.addresses == ("clip.mp4",)
    assert arguments.settings == Settings()
    assert (arguments.out, arguments.overlay, arguments.quiet) == ((), None, False)


def test_flags_plain_and_grouped() -> None:
    plain = ["-b", "100", "--memory", "stream", "--frames", "5", "--stream", "1", "--analysis-level", "1", "--patches"]
    grouped = ["--source.rate", "30", "--cache.no-enabled", "--change.keyframe-interval", "7"]
    arguments = run_arguments(["clip.mp4", *plain, *grouped, "-q"])
    settings = arguments.settings
    assert (settings.budget, settings.analysis_level, settings.patches) == (100, 1, True)
    assert (settings.source.frames, settings.source.stream, settings.source.rate) == (5, 1, 30.0)
    assert settings.allocation.memory == "stream"
    assert (settings.cache.enabled, settings.change.keyframe_interval) == (False, 7)
    assert arguments.quiet


def test_the_plain_spelling_and_the_full_one_are_the_same_flag() -> None:
    plain, full = run_arguments(["c", "--frames", "5"]), run_arguments(["c", "--source.frames", "5"])
    assert plain == full


def test_values_one_behind_another_or_each_with_its_flag() -> None:
    arguments = run_arguments(["c", "-o", "a.jsonl", "b.npz", "--out", "c.parquet", "--query", "red car", "dog"])
    assert arguments.out == ("a.jsonl", "b.npz", "c.parquet")
    assert arguments.settings.query == ("red car", "dog")


def test_a_name_that_begins_with_a_dash() -> None:
    assert run_arguments(["-b", "5", "--", "-clip.mp4"]).addresses == ("-clip.mp4",)


def test_every_setting_has_a_flag_of_its_own_and_a_help_text() -> None:
    names = spellings()
    assert len(names) == len(set(names))
    assert all(text_of(*keys) for keys, _ in leaves())


def test_every_flag_appears_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run_arguments(["--help"])
    assert end.value.code == 0
    told = capsys.readouterr()
    for name in spellings():
        assert name in told.out
    assert told.out.index("--budget") < told.out.index("--memory") < told.out.index("--engine")
    assert told.err == ""


@pytest.mark.parametrize(("parse", "examples"), [(run_flags, 3), (live_flags, 3)])
def test_every_example_of_the_help_has_a_line_of_its_own(
    parse: Any, examples: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed_settings(parse, ["--help"], "a")
    shown = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("$ foveate ") and line.count(" foveate ") == 1 for line in shown) == examples


def test_the_help_has_the_most_used_flags_first_and_the_others_in_boxes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run_arguments(["--help"])
    first, *boxes = re.split(r" options \W", capsys.readouterr().out)
    assert "SOURCE ..." in first
    assert [name in boxes[0] for name in ("--budget", "--query", "--memory", "--out", "--overlay")] == 5 * [True]
    assert "--start TIME" not in boxes[0]
    (source,) = [box for box in boxes if "--start TIME" in box]
    assert "--fps X" in source
    assert "--source.fps" not in source  # which is understood all the same


def test_a_preset_by_name_and_flags_on_top() -> None:
    assert run_arguments(["c", "--config", "stream"]).settings.allocation.memory == "stream"
    assert run_arguments(["c", "--config=stream", "--memory", "frame"]).settings.allocation.memory == "frame"
    assert run_arguments(["--memory", "frame", "-c", "stream", "c"]).settings.allocation.memory == "frame"


@pytest.mark.parametrize("mark", ["", "\ufeff"])  # as some editors put it before the text
def test_a_file_of_settings(mark: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(mark + 'budget = 50\nquery = ["dog"]\n[source]\nframes = 9\n', encoding="utf-8")
    settings = run_arguments(["c", "--config", str(file), "--budget", "60"]).settings
    assert (settings.budget, settings.query, settings.source.frames) == (60, ("dog",), 9)
    assert run_arguments(["c", "--config", str(file), "--query", "cat"]).settings.query == ("cat",)


def test_the_presets_that_come_along_are_valid() -> None:
    assert {"default", "stream"} <= presets().keys()
    for name in presets():
        load_preset(name)
    assert load_preset("default") == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("budget = " + 2000 * "[" + 2000 * "]", "it is nested too deeply"),
        ("budgett = 3", "budgett is not a setting; did you mean budget?"),
        ("[allocation]\nmemroy = 'frame'", "allocation.memroy is not a setting; did you mean allocation.memory?"),
        ("memory = 'frame'", "memory is not a setting; did you mean allocation.memory?"),
        ("budget = 0", "budget must be greater than or equal to 1, got 0"),
        ("budget = 'many'", "budget must be a valid integer"),
        ("budget = 3\n[allocation]\nmerge = 2", "budget must be at least 4"),
        ("source = 3", "source must be"),
        ("budget = ", "is not valid TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        run_arguments(["c", "--config", str(file)])
    assert said in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "SOURCE is missing; see foveate run --help"),
        ("a --bugdet 3", "unknown option --bugdet; did you mean --budget?"),
        ("--query red", "SOURCE"),
        ("--bugdet 3 a", "unknown option --bugdet; did you mean --budget?"),
        ("--budget 3 --bugdet", "unknown option --bugdet"),
        ("-q", "SOURCE is missing"),
        ("a --memroy frame", "did you mean --memory?"),
        ("a --cut-share 0.5", "did you mean --change.cut-share?"),
        ("a --budget many", "--budget must be a whole number, got 'many'"),
        ("a -b 1.5", "--budget must be a whole number, got '1.5'"),
        ("a --frames 1e3", "--frames must be a whole number, got '1e3'"),
        ("a --fps half", "--fps must be a number, got 'half'"),
        ("a --change.threshold low", "--change.threshold must be a number, got 'low'"),
        ("a --budget", "missing value for --budget; see"),
        ("a --overlay", "missing value for --overlay; see"),
        ("a --budget 0", "--budget must be greater than or equal to 1, got 0"),
        ("a --frames 0", "--frames must be greater than or equal to 1, got 0"),
        ("a --change.threshold nan", "--change.threshold must"),
        ("a --engine gpu", "invalid choice 'gpu'"),
        ("a --query", "--query needs a value"),
        ("a --out", "--out needs a value"),
        ("a --config", "missing value"),
        ("a --config strem", "did you mean stream?"),
        ("a --config nowhere.toml", "cannot read the configuration nowhere.toml"),
        ("a --config .", "cannot read the configuration ."),
    ],
)
def test_what_is_wrong_with_a_flag_is_named(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SettingsError) as caught:
        run_arguments(line.split())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert capsys.readouterr() == ("", "")


def test_a_text_where_a_preset_needs_a_list_is_told_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('query = "red car"\n')
    with pytest.raises(SettingsError) as caught:
        load_preset(str(file))
    assert str(caught.value) == f"{file}: query must be a list such as ['red car'], got 'red car'"


def test_the_flag_that_may_be_meant_is_one_of_the_command() -> None:
    def paint(pictures: tuple[str, ...] = (), depths: int = 3) -> None:
        """Paint."""

    with pytest.raises(SettingsError, match="did you mean --depths"):
        parse_call(paint, ["--depht", "5"], "paint")


def test_a_file_that_looks_like_a_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("-day.mp4").touch()
    with pytest.raises(SettingsError, match=r"for the file of that name write \./-day\.mp4"):
        run_arguments(["-day.mp4"])


def test_spelling_follows_the_tree() -> None:
    assert spelling(("change", "cut_share")) == "--change.cut-share"
    assert spelling(("allocation", "memory")) == "--memory"


@pytest.mark.parametrize(
    ("flags", "queries"),
    [
        (["--query", "-sky"], ("-sky",)),
        (["--query", "red car", "-sky", "dog:2", "-b", "9"], ("red car", "-sky", "dog:2")),
        (["--query=-sky", "--query", "-a", "-b", "9"], ("-sky", "-a")),
        (["--query", "größe\nzwei"], ("größe\nzwei",)),
    ],
)
def test_queries_may_begin_with_a_minus_sign(flags: list[str], queries: tuple[str, ...]) -> None:
    assert run_arguments(["c", *flags]).settings.query == queries


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("", "words"),
        ("-", "words"),
        ("?" * 10_000, "words"),
        ("dog:0", "weight"),
        ("dog:99", "weight"),
    ],
)
def test_a_query_that_cannot_be_is_refused(query: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said) as error:
        run_arguments(["c", "--query", query])
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--start", "1:02:03.5", "--end=1:03:00"], {"start": 3723.5, "end": 3780.0}),
        (["--start", "-30", "--fps", "2"], {"start": -30.0, "fps": 2.0}),
        (["--start=-1:00", "--every", "10"], {"start": -60.0, "every": 10}),
        (["--start", "-1:00", "--end", "-0:30"], {"start": -60.0, "end": -30.0}),
        (["--source.start", "5", "--frames", "3"], {"start": 5.0, "frames": 3}),
    ],
)
def test_times_are_written_as_people_do(arguments: list[str], expected: dict[str, float]) -> None:
    assert run_arguments(["a.mp4", *arguments]).settings.source == SourceSettings(**expected)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--start", "5", "--end", "4"], "source.end must be after source.start, 5 s, got 4 s"),
        (["--fps", "1", "--every", "2"], "source.fps and source.every cannot be combined"),
        (["--start", "1:75"], "--start must be a time such as 12.5 or 1:02:03.5, got '1:75'"),
        (["--fps", "0"], "--fps must be greater than or equal to"),
    ],
)
def test_times_that_are_none(arguments: list[str], told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        run_arguments(["a.mp4", *arguments])
    assert told in str(caught.value)


def test_only_flags_that_are_named_are_read() -> None:
    """tyro takes half a millisecond for each. A few more are no harm: those that share a part of the name."""
    flags = run_flags(Settings(), named_in(["clip.mp4", "--clip.no-wait", "-o", "a.jsonl", "--max-frames=5"]))
    read = {each.name for each in fields(flags)}
    assert {"addresses", "clip", "out", "source", "live"} <= read
    boxes = {each.name: {flag.name for flag in fields(each.type)} for each in fields(flags) if is_dataclass(each.type)}
    assert (boxes["source"], boxes["live"], boxes["clip"]) == ({"frames"}, {"wait"}, {"wait"})
    assert not {"budget", "change", "query", "allocation", "overlay", "quiet"} & read
    assert flags.budget == 273
    assert flags.change.threshold == 2.0


def test_what_is_not_named_has_the_values_of_the_preset(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("budget = 50\nmaps = ['edges']\n[change]\nthreshold = 7.0\n", encoding="utf-8")
    settings = run_arguments(["c", "--config", str(tmp_path / "mine.toml"), "--change.noise", "3"]).settings
    assert (settings.budget, settings.maps, settings.change.threshold, settings.change.noise) == (50, ("edges",), 7, 3)
