"""Reading NPZ files that users provide."""

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.small_files import refuse_endless


def npz_arrays(path: Path, most: int | None = None) -> dict[str, NDArray[Any]]:
    """All arrays of an NPZ file, by name.

    Raises OSError where it cannot be read, ValueError where it is not one, or holds more than ``most`` bytes.
    """
    refuse_endless(path)
    try:
        if most is not None:
            _refuse_large(path, most)
        with np.load(path, allow_pickle=False) as content:
            return {name: content[name] for name in content.files}
    except TooLargeError:
        raise
    except (EOFError, TypeError, zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, MemoryError) as error:
        raise ValueError("it is not an NPZ file") from error


class TooLargeError(ValueError):
    """The arrays are larger than such a file needs."""


def _refuse_large(path: Path, most: int) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())  # unpacked, and no more is read
    if size > most:
        raise TooLargeError(f"it holds {size:,} bytes, more than the {most:,} that such a file needs")
