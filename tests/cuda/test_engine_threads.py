"""Which stages of the CUDA engine share a thread, without a card."""

from dataclasses import replace
from pathlib import Path

from foveate.cuda.decode.source import DeviceSource
from foveate.cuda.engine import CudaEngine
from foveate.pipeline.cascade.feedback import Feedback
from foveate.pipeline.chain import Stage
from foveate.pipeline.frames import Colour, Source
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings, SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.sources.container import ContainerFeed


def threads(source: Source) -> list[list[str]]:
    stages = CudaEngine(plan_stream(Settings()), Feedback()).threads(source, Stage("decode", lambda _: iter(source)))
    return [[stage.name for stage in thread] for thread in stages]


def test_only_what_is_decoded_on_the_gpu_is_read_in_the_thread_of_the_gpu(samples: Path) -> None:
    path, settings = samples / "tree.mp4", SourceSettings()
    on_host = open_source(str(path), settings)
    on_device = DeviceSource(ContainerFeed(path, settings), replace(on_host.info), Colour(), settings)
    try:
        assert threads(on_host) == [["decode"], ["upload", "pyramid", "cascade"]]
        assert threads(on_device) == [["decode", "upload", "pyramid", "cascade"]]
    finally:
        on_host.close()
        on_device.close()
