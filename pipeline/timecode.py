"""Times in a video as people write them."""

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field

_CODE: Final = re.compile(r"(-?)(?:(?:(\d{1,5}):)?(\d{1,5}):)?(\d{1,9}(?:\.\d{0,12})?|\.\d{1,12})", re.ASCII)
_RULE: Final = "must be a time such as 12.5 or 1:02:03.5"
LONGEST: Final = 1e7  # seconds, about 116 days


def seconds_of(written: Any) -> Any:
    """``"12.5"``, ``"1:30"`` or ``"1:02:03.5"`` in seconds, also with a minus sign; other than text as it is.

    Raises ValueError for other text, and for true and false.
    """
    if isinstance(written, bool):
        raise ValueError(_RULE)
    if not isinstance(written, str):
        return written
    match = _CODE.fullmatch(written.strip())
    if match is None or (match[3] and float(match[4]) >= 60) or (match[2] and int(match[3]) >= 60):
        raise ValueError(_RULE)
    seconds = 3600 * int(match[2] or 0) + 60 * int(match[3] or 0) + float(match[4])
    return -seconds if match[1] else seconds


Seconds = Annotated[float, BeforeValidator(seconds_of), Field(ge=-LONGEST, le=LONGEST, allow_inf_nan=False)]
"""A setting that is a time in a video; negative: before its end."""
