"""The pauses between tries to reconnect."""

import random

_FIRST = 0.5  # seconds: at most two tries a second
_LASTING = 3.0  # seconds: a connection that brought pictures for less counts as one more try in vain
_JITTER = 0.25  # of a pause, added at random, so that many readers do not come back at the same moment


class Backoff:
    """Pauses that double up to ``most`` seconds; all of them, with jitter, lie in [0.5, most], or are 0.5."""

    def __init__(self, most: float) -> None:
        self._most = max(_FIRST, most)
        self._next = _FIRST

    def pause(self) -> float:
        """Seconds to wait before the next try."""
        pause = min(self._most, self._next * (1 + _JITTER * random.random()))
        self._next = min(self._most, 2 * self._next)
        return pause

    def ended(self, seconds: float) -> None:
        """A connection ended that had brought pictures for so long: after a lasting one, the next pause is short."""
        if seconds >= _LASTING:
            self._next = _FIRST
