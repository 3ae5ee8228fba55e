"""Live sources: cameras and network streams, which stall, vanish and come back."""
