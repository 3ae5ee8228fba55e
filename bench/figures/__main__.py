"""``python -m foveate.bench.figures``."""

import sys

from foveate.bench.figures.page import main
from foveate.pipeline.exits import leave

if __name__ == "__main__":
    leave(main(sys.argv[1:]))
