"""The library of compiled kernels, where it does not fit the code that calls it."""

import pytest

from foveate.pipeline.native.library import kernel


def test_kernels_older_than_the_code_are_told_when_they_are_loaded():
    with pytest.raises(ImportError, match="have no of_tomorrow: they are older than this code; install"):
        kernel("of_tomorrow")
