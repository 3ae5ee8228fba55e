"""``python -m foveate.bench.figures``."""

import sys

from foveate.bench.figures.page import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
