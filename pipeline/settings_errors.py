"""Errors in settings and counts, each as one line, and the list of all settings that they are checked against."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.phrase import shortened
from foveate.pipeline.settings import MOST_FRAMES, Settings, rule, shown_value

Keys = tuple[str, ...]


def leaves(model: type[BaseModel] = Settings, above: Keys = ()) -> Iterator[tuple[Keys, FieldInfo]]:
    """Every single setting: its keys in the tree, and its field."""
    for name, info in model.model_fields.items():
        if isinstance(info.annotation, type) and issubclass(info.annotation, BaseModel):
            yield from leaves(info.annotation, (*above, name))
        else:
            yield (*above, name), info


def complaint(error: ValidationError, spell: Callable[[tuple[str, ...]], str]) -> str:
    """The first fault that pydantic found, with the setting spelled by ``spell`` and the value."""
    fault = error.errors(include_url=False)[0]
    keys = tuple(str(part) for part in fault["loc"] if isinstance(part, str))
    if fault["type"] == "extra_forbidden":
        known = [".".join(leaf) for leaf, _ in leaves()]
        meant = nearest(".".join(keys), known)
        return f"{shortened(spell(keys))} is not a setting; {meant}see foveate run --help for all"
    if not keys:  # a rule that concerns several settings names them itself
        return rule(fault)
    more = error.error_count() - 1
    return f"{spell(keys)} {rule(fault)}, got {shown_value(fault['input'])}" + (f" (and {more} more)" if more else "")


def check_count(flag: str, number: int, least: int = 1, most: int = MOST_FRAMES) -> None:
    """Raise SettingsError where what ``--flag`` counts is below ``least`` or above ``most``."""
    bound = f"least {least}" if number < least else f"most {most}" if number > most else ""
    if bound:
        raise SettingsError(f"--{flag} must be at {bound}, got {shown_value(number)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint at the entry of ``known`` most like ``word``, ready to stand before more text; may be empty."""
    close = closest(word, known)
    return f"did you mean {close}? " if close else ""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The entry of ``known`` most like ``word``, whole or behind its last dot; None where none is like it."""
    known = list(known)
    by_end = {entry.rpartition(".")[2]: entry for entry in known}
    close = get_close_matches(word, known, n=1, cutoff=0.6)
    close = close or [by_end[end] for end in get_close_matches(word.rpartition(".")[2], by_end, n=1)]
    return close[0] if close else None
