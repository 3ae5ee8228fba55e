"""Sinks take Selections: JSON lines, Parquet, NPZ, safetensors, overlay video."""
