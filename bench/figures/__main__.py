"""``python -m foveate.bench.figures``."""

from foveate.bench.entry import run_module
from foveate.bench.figures.page import figures

if __name__ == "__main__":
    run_module(figures)
