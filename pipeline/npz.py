"""Reading NPZ files that users hand in."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


def npz_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ file, by name. Raises OSError where it cannot be read, ValueError where it is not one."""
    try:
        with np.load(path, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except (EOFError, TypeError, zipfile.BadZipFile, ValueError) as error:
        raise ValueError("it is not an NPZ file") from error
