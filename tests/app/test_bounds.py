"""Every number of the settings, given as what it is not: one line and exit code 2, or a run. Never a fault of ours."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

from foveate.app.flags import spelling
from foveate.app.main import main
from foveate.pipeline import open_stream
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings_errors import leaves

NINES = "9" * 5000  # more digits than Python reads as a number
VALUES = ("inf", "-inf", "nan", str(2**31), str(2**63), "-1", "0", "true", NINES, "1e308")
TREE = {keys: info.annotation for keys, info in leaves()}


def _numeric(kind: Any) -> bool:
    inner = {type(value) for value in get_args(kind)} if get_origin(kind) is Literal else {kind, *get_args(kind)}
    return bool(inner & {int, float})


NUMBERS = [keys for keys, kind in TREE.items() if _numeric(kind)]
SWITCHES = [keys for keys, kind in TREE.items() if bool in (kind, *get_args(kind))]


def _toml(keys: tuple[str, ...], value: str) -> str:
    *groups, name = keys
    return "".join(f"[{group}]\n" for group in groups) + f"{name} = {value}\n"


def _nested(keys: tuple[str, ...], value: Any) -> dict[str, Any]:
    return {keys[0]: _nested(keys[1:], value) if keys[1:] else value}


def _python(value: str) -> Any:
    if value == "true":
        return True
    if value == NINES:
        return 10**5000
    return int(value) if value.lstrip("-").isdigit() else float(value)


def _said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main([*arguments, "--quiet", "--engine", "cpu"])
    return code, capsys.readouterr().err


def _is_told_or_runs(code: int, said: str) -> None:
    assert "bug in Foveate" not in said
    assert code in (0, 2), said
    if code == 2:
        assert said.startswith("foveate: error: ")
        assert said.count("\n") == 1
        assert len(said) < 400


def test_the_tree_has_numbers_and_switches_to_walk_over() -> None:
    assert {("budget",), ("allocation", "min_gain"), ("score", "passes"), ("source", "frames")} <= set(NUMBERS)
    assert len(NUMBERS) >= 30
    assert ("cache", "enabled") in SWITCHES


@pytest.mark.parametrize("keys", NUMBERS, ids=".".join)
def test_numbers_in_a_file_are_told_or_run(
    keys: tuple[str, ...], tmp_path: Path, picture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    for value in (*VALUES, "0x" + "f" * 5000):
        file.write_text(_toml(keys, "1" + "0" * 308 + ".0" if value == "1e308" else value))
        code, said = _said(["run", picture, "-c", str(file), "-o", str(tmp_path / "out.jsonl")], capsys)
        _is_told_or_runs(code, said)
        if value in ("inf", "-inf", "nan", "true", str(2**63), NINES):
            assert code == 2, (keys, value[:20])


@pytest.mark.parametrize("keys", NUMBERS, ids=".".join)
def test_numbers_of_flags_are_told_or_run(
    keys: tuple[str, ...], tmp_path: Path, picture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in VALUES:
        flag = f"{spelling(keys)}={value}"
        code, said = _said(["run", picture, flag, "-o", str(tmp_path / "out.jsonl")], capsys)
        _is_told_or_runs(code, said)
        if value in ("inf", "-inf", "nan", "true", str(2**63), NINES):
            assert code == 2, flag[:60]


@pytest.mark.parametrize("keys", NUMBERS, ids=".".join)
def test_numbers_of_keywords_are_settings_errors_or_run(keys: tuple[str, ...], picture: str) -> None:
    for value in VALUES:
        given: Mapping[str, Any] = _nested(keys, _python(value))
        try:
            with open_stream(picture, engine="cpu", **given) as stream:
                assert len(list(stream)) == 1
        except SettingsError as error:
            assert "\n" not in str(error)  # noqa: PT017 - either way is right
            assert len(str(error)) < 300  # noqa: PT017
            continue
        assert value not in ("inf", "-inf", "nan", "true", str(2**63), NINES), keys


@pytest.mark.parametrize("keys", SWITCHES, ids=".".join)
@pytest.mark.parametrize("value", [1, 0, "yes", "true", 1.0])
def test_a_switch_is_true_or_false_and_nothing_else(keys: tuple[str, ...], value: object, picture: str) -> None:
    with pytest.raises(SettingsError, match=r"\.?".join(keys)):
        open_stream(picture, **_nested(keys, value))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": True}, "budget must be a valid integer, got True"),
        ({"budget": 100.0}, "budget must be a valid integer, got 100.0"),
        ({"budget": "100"}, "budget must be a valid integer, got '100'"),
        ({"score": {"passes": True}}, "score.passes must be 1 or 2, got True"),
        ({"allocation": {"merge": 2.0}}, "allocation.merge must be 1, 2 or 3, got 2.0"),
        ({"change": {"threshold": True}}, "change.threshold must be a valid number, got True"),
    ],
)
def test_no_kind_of_value_stands_in_for_another(given: dict[str, Any], said: str, picture: str) -> None:
    with pytest.raises(SettingsError) as caught:
        open_stream(picture, **given)
    assert str(caught.value) == said


def test_numbers_of_numpy_are_numbers(picture: str) -> None:
    given: dict[str, Any] = {"budget": np.int64(7), "score": {"floor": np.float32(0.25), "passes": np.int8(2)}}
    with open_stream(picture, cache={"enabled": np.bool_(False)}, **given) as stream:
        settings = stream.settings
    assert (settings.budget, settings.score.floor, settings.score.passes) == (7, 0.25, 2)
    assert settings.cache.enabled is False


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "PICTURE", "--show-channels", "x.png", "--show-frame", NINES],
        ["run", "PICTURE", "--show-channels", "x.png", "--show-frame", str(2**63)],
        ["run", "PICTURE", "--show-channels", "x.png", "--show-frame", "-1"],
        ["run", "PICTURE", "--text", "ocr", "--query", "text", "--ocr.threads", "10000"],
        *(["live", "0", "--keep", value] for value in ("0", "-1", NINES, str(2**63), "true")),
        *(["live", "0", "--duration", value] for value in (NINES, NINES + "s", "inf", "nan", "-1s", "1e9d", "9999d")),
        *(["live", "0", "--rotate", value] for value in (NINES + "MB", NINES + "h", "inf", "-1h", "99999999999GB")),
        *(["fit-scorer", "x.npz", "-o", "y.toml", "--ridge", value] for value in ("inf", "nan", "0", "-1", "1e308")),
        *(["fit-pca", "x", "-o", "y.npz", "--every", value] for value in (NINES, "0", str(2**63))),
        *(["fit-pca", "x", "-o", "y.npz", "--most", value] for value in (NINES, "0", str(2**63))),
        *(["fit-pca", "x", "-o", "y.npz", "--components", value] for value in (NINES, "0", "17")),
        *(["ask", "PICTURE", "?", "--model", "m", "--fps", value] for value in ("0", "-1", "inf", "nan", "1e308")),
        *(["ask", "PICTURE", "?", "--model", "m", "--frames", value] for value in (NINES, "0", "-1", str(2**63))),
        *(["ask", "PICTURE", "?", "--model", "m", "--budget", value] for value in (NINES, "0", str(2**31), "1.5")),
        *(["ask", "PICTURE", "?", "--model", "m", "--max-tokens", value] for value in (NINES, "0", str(2**63))),
        *(["ask", "PICTURE", "?", "--model", "m", "--pixels-per-token", value] for value in (NINES, "0", str(2**31))),
        *(["ask", "0", "?", "--model", "m", "--every", value] for value in (NINES, "0", "inf", "-1s", "9999d")),
        *(["bench", "x", "--repeats", value] for value in (NINES, "0", str(2**63))),
        *(["bench", "x", "--frames", value] for value in (NINES, "0", str(2**63))),
    ],
    ids=lambda arguments: " ".join(arguments)[:50],
)
def test_numbers_of_the_commands_own_flags_have_bounds(
    arguments: list[str], picture: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([picture if argument == "PICTURE" else argument for argument in arguments])
    said = capsys.readouterr().err
    assert code == 2
    assert said.startswith("foveate: error: ")
    assert said.count("\n") == 1
    assert len(said) < 400


@pytest.mark.parametrize(
    "address", ["http://[::1", "https://[::1", "rtsp://[::1", "rtsps://[", "http://a:99999999999/"]
)
def test_an_address_that_is_none_is_told(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live", address, "--duration", "5s"]) == 1
    said = capsys.readouterr().err
    assert "bug in Foveate" not in said
    assert f"foveate: error: {address}" in said


@pytest.mark.parametrize("place", ["[::1", "[x]/a.mp4", "a]b/a.mp4", "[", "me:secret@[/a.mp4"])
@pytest.mark.parametrize("use", ["run http", "run ftp", "corpus https", "corpus s3", "output mqtt"])
def test_a_host_that_is_none_is_told_wherever_it_stands(
    use: str, place: str, picture: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, scheme = use.split()
    address, out = f"{scheme}://{place}", str(tmp_path / "out")
    given = ["run", picture, "-o", address] if command == "output" else [command, address, "-o", out]
    code = main([*given, "--quiet"])
    said = capsys.readouterr().err
    assert "bug in Foveate" not in said
    assert code == (2 if command == "output" else 1)
    assert said.startswith("foveate: error: ")
    assert said.count("\n") == 1
    assert "secret" not in said
