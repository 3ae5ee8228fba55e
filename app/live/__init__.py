"""``foveate live``: cameras and network streams, for weeks."""
