"""What the docstring behind a setting says. pydantic would read them all whenever settings are imported."""

import ast
import inspect
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel

from foveate.pipeline.settings import Settings


def text_of(*keys: str) -> str:
    """The help text of the setting at ``keys``, in one line."""
    group: Any = Settings
    for key in keys[:-1]:
        group = group.model_fields[key].annotation
    return _texts(group)[keys[-1]]


@cache
def _texts(model: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(inspect.getsource(model)).body
    assert isinstance(definition, ast.ClassDef)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairwise(definition.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }
