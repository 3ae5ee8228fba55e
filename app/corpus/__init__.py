"""``foveate corpus``: many videos, by many processes or machines."""
