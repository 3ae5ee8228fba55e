"""The help of a function whose parameters are the flags of a command, as ``foveate run`` words it."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, TypeVar, get_type_hints

from tyro.conf import arg

_T = TypeVar("_T")


def with_flags_of(target: Callable[..., Any], call: Callable[..., _T]) -> Callable[..., _T]:
    """``call``, which gets the docstring, and for tyro the parameters, of ``target``; defaults are shown as ``[3]``."""
    hints = get_type_hints(target, include_extras=True)
    signature = inspect.signature(target)
    call.__doc__ = target.__doc__
    call.__annotations__ = {name: Annotated[hints[name], _DEFAULTS] for name in signature.parameters}
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


def _shown(default: str) -> str:
    """A default as tyro words it; nothing where the text tells what happens without the flag."""
    return "" if default in ("", "None", "False") else f"[{default}]"


_DEFAULTS: Final = arg(help_behavior_hint=_shown)
