"""Buckets: Amazon S3, what speaks its protocol, and whatever else fsspec knows."""

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import IO, Any, Final

from foveate.pipeline.errors import SettingsError, SourceError, one_line
from foveate.pipeline.extras import install_command
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.schemes import scheme_of

_CONNECTS: Final = 3  # seconds within which a server must take a connection
_ANSWERS: Final = 20  # seconds that it may be silent
_ANSWERS_FIRST: Final = 4  # the same for the very first question
_ATTEMPTS: Final = 2
_MISSING: Final = {"s3": "s3fs", "s3a": "s3fs"}  # schemes and the package of the extra that speaks them


def file_system(address: str, first: bool = False) -> tuple[Any, str]:
    """The file system of an address, and the path in it; ``first``: one that gives up soon.

    Raises SettingsError where nothing speaks the scheme.
    """
    scheme = scheme_of(address)
    if find_spec("fsspec") is None or (scheme in _MISSING and find_spec("s3fs") is None):
        raise SettingsError(f"{shown(address)}: {scheme}:// needs fsspec and s3fs: {install_command('corpus')}")
    from fsspec.core import url_to_fs

    try:
        files, path = url_to_fs(address, **(_options(first) if scheme in _MISSING else {}))
    except ImportError as error:
        raise SettingsError(f"{shown(address)}: {one_line(error)}") from error
    except ValueError as error:
        raise SettingsError(f"{shown(address)}: {one_line(error)}; give a folder, or s3://BUCKET/PATH") from error
    return files, str(path)


def require_answer(address: str) -> None:
    """Raise SourceError, within 10 s, where no server answers, or it wants other credentials."""
    files, path = file_system(address, first=True)
    if hasattr(files, "retries"):  # of s3fs, beside those of the library below it
        files.retries = 1
    try:
        files.exists(path)
    except Exception as error:  # of any library
        raise SourceError(f"{shown(address)}: {reason_of(error)}") from error


def _options(first: bool) -> dict[str, Any]:
    """The options of s3fs."""
    silence, attempts = (_ANSWERS_FIRST, 1) if first else (_ANSWERS, _ATTEMPTS)
    limits = {"connect_timeout": _CONNECTS, "read_timeout": silence, "retries": {"total_max_attempts": attempts}}
    return {"use_listings_cache": False, "config_kwargs": limits}


@contextlib.contextmanager
def opened(address: str) -> Iterator[IO[bytes]]:
    """A video in a bucket, as a binary file. Raises SourceError, also for what fails while it is read."""
    files, path = file_system(address)
    try:
        with files.open(path, "rb") as file:
            yield file
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{shown(address)}: {reason_of(error)}") from error


def reason_of(error: Exception) -> str:
    """What a store says, in one line, and what to do."""
    kind = type(error).__name__
    if kind in ("NoCredentialsError", "PartialCredentialsError"):
        return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write ~/.aws/credentials"
    if isinstance(error, PermissionError):
        return f"permission denied ({one_line(error)}); use other credentials, or another place"
    if isinstance(error, FileNotFoundError):
        return f"there is no such bucket or object ({one_line(error)})"
    return one_line(error)
