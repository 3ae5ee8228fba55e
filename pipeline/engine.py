"""What does the pixel work: the interface of the engines, and the choice of one."""

import logging
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Protocol

from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.cpu.engine import CpuEngine
from foveate.pipeline.errors import EngineError
from foveate.pipeline.frames import Frame, Source
from foveate.pipeline.info import EngineInfo
from foveate.pipeline.plan import StreamPlan
from foveate.pipeline.selection import Step
from foveate.pipeline.settings import LiveSettings, Settings, SourceSettings
from foveate.pipeline.sources import open_source

_LOG = logging.getLogger("foveate")


class Engine(Protocol):
    """Three stages between Decode and Output. What passes between them is the engine's own, and immutable.

    ``upload``, ``pyramid`` and ``cascade`` are generators over their upstream; ``threads`` says which share a thread.
    """

    @property
    def info(self) -> EngineInfo:
        """Its name, why it is not the one to be expected, and what it leaves to the CPU."""

    def threads(self, source: Source, decode: Stage) -> list[list[Stage]]:
        """``decode``, which reads ``source``, and the three stages behind it; those that share a thread in one list."""

    def upload(self, frames: Iterable[Frame]) -> Iterator[Any]:
        """Yield one package per Frame: what changed."""

    def pyramid(self, updates: Iterable[Any]) -> Iterator[Any]:
        """Yield one package per Update: levels and channels."""

    def cascade(self, states: Iterable[Any]) -> Iterator[Step]:
        """Yield one Step per State: the Selection."""


def open_engine(plan: StreamPlan, feedback: Feedback, lockstep: bool = False) -> Engine:
    """The engine that the settings ask for; ``auto`` takes the GPU where there is one.

    ``lockstep``: each frame's Selection is made before the next frame is asked for, which the GPU takes longer for.

    Where it does not, although there is a sign of a GPU, a warning says why, once, and so does the engine's ``info``.

    Raises EngineError where this machine cannot run it.
    """
    settings = plan.settings
    if settings.engine == "cpu":
        return CpuEngine(plan, feedback)
    device = _cuda("driver.device")

    problem = device.gpu_problem()
    if problem is None:
        device.check_number(settings.device or 0)
        return _cuda("engine").CudaEngine(plan, feedback, lockstep=lockstep)
    if settings.device_patches:
        raise EngineError(f"device_patches needs engine 'cuda', which cannot run here: {problem}")
    if settings.engine == "cuda":
        raise EngineError(f"engine 'cuda' cannot run here: {problem}; use --engine cpu")
    if not device.gpu_expected():
        return CpuEngine(plan, feedback)
    engine = CpuEngine(plan, feedback, instead_of_cuda=problem)
    _LOG.warning("%s; use --engine cpu to run without this warning", *engine.info.notes)
    return engine


def import_ahead() -> bool:
    """Import the CUDA engine where there is a sign of a GPU, which is not touched: for a process that will fork.

    Returns whether there is.
    """
    expected = bool(_cuda("driver.device").gpu_expected())
    if expected:
        _cuda("engine")
        _cuda("decode.source")
    return expected


def gpu_count(settings: Settings) -> int:
    """How many GPUs engine cuda could use with these settings."""
    return 0 if settings.engine == "cpu" else int(_cuda("driver.device").gpu_count())


def open_decoder(engine: Engine, address: str, settings: SourceSettings, network: LiveSettings, gpu: int = 0) -> Source:
    """The source for ``engine``, which runs on GPU number ``gpu``. Raises SourceError.

    The CUDA engine's is decoded on the GPU where the hardware can; else the source's ``info`` says why not.
    """
    source = open_source(address, settings, network)
    if engine.info.name != "cuda":
        return source
    return _cuda("decode.source").on_device(source, address, settings, gpu)


def live_decoding(engine: Engine, name: str, gpu: int = 0) -> Any:
    """What decodes the connections of a live source (pipeline.live.decoding.LiveDecoding); None: the CPU does.

    ``name`` is the source's, as it may be shown.
    """
    return _cuda("decode.live").LiveDecoding(name, gpu) if engine.info.name == "cuda" else None


def _cuda(module: str) -> Any:
    """A module of the CUDA engine, by name and not before it is asked for: pipeline does without that engine."""
    return import_module(f"foveate.cuda.{module}")
