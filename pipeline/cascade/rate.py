"""Rate control for stream memory: how many tokens a frame may spend where the budget is an average.

The debt is the number of tokens spent beyond the average R, at least 0. The price of a token rises with it, so that a
change is shown at once and refined later; and no frame may push the debt Q beyond D = 7 R. As the
debt moves by what a frame spends less R, any W frames spend at most R W + D: a leaky bucket (Turner, "New directions
in communications", 1986).
"""

from typing import Final, NamedTuple

DEPTH: Final = 7
"""Most debt, in frames' averages."""
OCTAVES: Final = 14
"""Doublings of the least price from no debt to the most."""


class FrameLimits(NamedTuple):
    """Limits of one frame."""

    most: int  # tokens
    debt: float  # as a share of the most, in [0, 1]


class RateControl:
    """The debt of one stream. Keyframes, cuts and changes of size do not reset it: the tokens were sent.

    It is kept in units, which are tokens or groups of ``merge`` x ``merge``, as on the GPU.
    """

    def __init__(self, burst: float, merge: int) -> None:
        """No frame spends more than ``burst`` times the average."""
        self._burst, self._each = burst, merge**2
        self._average, self._debt = 0, 0

    @property
    def debt(self) -> int:
        """Tokens spent beyond the average and not yet saved."""
        return self._debt * self._each

    def limits(self, average: int) -> FrameLimits:
        """Limits of the next frame, for an average of ``average`` tokens.

        Where that has fallen, debt beyond its own depth is forgiven, so that every frame may have the average.
        """
        self._average = average // self._each
        deepest = DEPTH * self._average
        self._debt = min(self._debt, deepest)
        most = min(int(self._burst * self._average), self._average + deepest - self._debt)
        return FrameLimits(most * self._each, self._debt / deepest)

    def spend(self, tokens: int) -> None:
        """RateControl for the tokens of a frame."""
        self._debt = max(0, self._debt + tokens // self._each - self._average)
