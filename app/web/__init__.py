"""The page of ``foveate live``, and what programs may ask for beside it."""
