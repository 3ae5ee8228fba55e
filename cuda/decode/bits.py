"""Numbers in the headers of coded video, read bit by bit."""


class Bits:
    """The bits of some bytes, one after the other. Raises IndexError behind the last."""

    def __init__(self, data: bytes) -> None:
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count: int) -> int:
        """An unsigned number of so many bits."""
        self._left -= count
        if self._left < 0:
            raise IndexError
        return self._value >> self._left & (1 << count) - 1

    def unsigned(self) -> int:
        """An unsigned Exp-Golomb number (ITU-T H.264, 9.1)."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)

    def signed(self) -> int:
        """A signed one (9.1.1)."""
        coded = self.unsigned()
        return (coded + 1) // 2 if coded & 1 else -(coded // 2)
