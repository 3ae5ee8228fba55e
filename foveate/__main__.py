"""``python -m foveate`` is the command ``foveate``."""

from foveate.app.main import entry

if __name__ == "__main__":
    entry()
