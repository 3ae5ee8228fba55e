"""The CPU engine: NumPy and OpenCV. The reference for the others."""

from collections.abc import Iterable, Iterator

from foveate.pipeline.attributes.colours import tables
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.cpu.cascade import cascade
from foveate.pipeline.cpu.pyramid import State, pyramid
from foveate.pipeline.cpu.update import Update
from foveate.pipeline.cpu.upload import upload
from foveate.pipeline.frames import Colour, Frame, Source
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Step

_COPIES = 3  # of the levels, where the Cascade reads them in another thread: one written, one in the channel, one read


class CpuEngine:
    """See pipeline.engine.Engine."""

    def __init__(self, plan: StreamPlan, feedback: Feedback, instead_of_cuda: str | None = None) -> None:
        """``instead_of_cuda``: why the GPU that seems to be there is not used."""
        self.info = EngineInfo("cpu", instead_of_cuda)
        self._plan = plan
        self._feedback = feedback
        if plan.attributes:
            tables(Colour())  # here, and not while the first pictures of a camera wait: OpenCV makes tables as well

    def threads(self, source: Source, decode: Stage) -> list[list[Stage]]:
        """Three threads for the three stages, or one where processors are few.

        Stages of many short array operations would fight over the interpreter's lock at each of them, and pass every
        picture from one processor's cache to the other's: together they get through up to a third more frames.
        """
        stages = [Stage("upload", self.upload), Stage("pyramid", self.pyramid), Stage("cascade", self.cascade)]
        return [[decode], stages] if self._plan.one_thread else [[decode], *([stage] for stage in stages)]

    def upload(self, frames: Iterable[Frame]) -> Iterator[Update]:
        """Frames to Updates."""
        return upload(frames, self._plan.settings.change, self._feedback)

    def pyramid(self, updates: Iterable[Update]) -> Iterator[State]:
        """Updates to States."""
        settings = self._plan.settings
        reads_levels = settings.patches or settings.allocation.memory == "stream"
        return pyramid(updates, self._plan, _COPIES if reads_levels and not self._plan.one_thread else 1)

    def cascade(self, states: Iterable[State]) -> Iterator[Step]:
        """States to Steps."""
        return cascade(states, self._plan, self._feedback)
