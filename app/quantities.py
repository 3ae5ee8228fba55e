"""Parsing of durations and sizes: 90s, 20m, 100MB."""

import re

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import shown_value

_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_BYTES = {"kb": 1000, "mb": 1000**2, "gb": 1000**3, "kib": 1024, "mib": 1024**2, "gib": 1024**3}
_LONGEST = 3650 * 86_400.0
_LARGEST = 1e15
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?) *([A-Za-z]*)")


def seconds_in(text: str, flag: str) -> float:
    """``90``, ``90s``, ``20m``, ``8h`` or ``2d`` in seconds. Raises SettingsError, which names ``flag``."""
    number, unit = _split(text)
    if unit not in _SECONDS or not number:
        raise SettingsError(f"{flag} must be a time such as 90s, 20m, 8h or 2d, got {shown_value(text)}")
    return _within(number * _SECONDS[unit], _LONGEST, "3650d", text, flag)


def size_or_seconds(text: str, flag: str) -> tuple[int | None, float | None]:
    """``100MB`` as (bytes, None), or ``1h`` as (None, seconds). Raises SettingsError, which names ``flag``."""
    number, unit = _split(text)
    if number and unit in _BYTES:
        return max(1, int(_within(number * _BYTES[unit], _LARGEST, "1000000GB", text, flag))), None
    if number and unit and unit in _SECONDS:
        return None, _within(number * _SECONDS[unit], _LONGEST, "3650d", text, flag)
    raise SettingsError(f"{flag} must be a size such as 100MB or a time such as 1h, got {shown_value(text)}")


def _within(amount: float, most: float, written: str, text: str, flag: str) -> float:
    if amount > most:
        raise SettingsError(f"{flag} must be at most {written}, got {shown_value(text)}")
    return amount


def _split(text: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(text.strip())
    return (float(match[1]), match[2].lower()) if match else (0.0, "?")
