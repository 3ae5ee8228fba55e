"""What a strategy on the card is made of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from foveate.cuda.cascade.arrays import Arrays
from foveate.cuda.driver.device import Device, Stream
from foveate.cuda.driver.memory import DeviceArray, Memory
from foveate.cuda.state import PixelState
from foveate.pipeline.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Allocation:
    """Where a strategy finds what it chooses from, and where its tokens go."""

    device: Device
    memory: Memory  # for what it needs besides
    pixels: PixelState
    arrays: Arrays
    settings: Settings
    conclusion: NDArray[np.void]  # the struct Conclusion
    debt: DeviceArray | None  # int32[1], in units; None where the budget is fixed
    stream: Stream
