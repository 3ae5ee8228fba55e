"""``foveate run``: sources in, tokens out."""

from foveate.app.arguments import RunArguments
from foveate.app.console import Console
from foveate.app.damage import conclude
from foveate.app.inputs import refuse_inputs
from foveate.app.outputs import Outputs
from foveate.app.progress import progress
from foveate.app.several import run_several
from foveate.app.signals import Interruption, interruptible
from foveate.app.standard_output import NOTHING_KEPT
from foveate.app.tally import Tally
from foveate.app.unused import unused
from foveate.app.writer import Opener, Writer
from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.corpus.names import Input


def run(arguments: RunArguments, open_stream: Opener, console: Console) -> int:
    """Write the tokens of every frame, and say on standard error how it goes. Returns the exit code.

    Raises SourceError, SettingsError, EngineError, SinkError, and BrokenPipeError where a reader went away.
    """
    inputs = expand(arguments.addresses)
    outputs = Outputs(arguments, inputs)
    refuse_inputs(outputs.files, [each.address for each in inputs], arguments.settings, arguments.encode)
    idle = unused(arguments.settings, outputs.tokens) if arguments.sheet is None else None  # whose maps are shown
    if idle is not None:
        console.warn(idle)
    if not outputs.files:
        console.warn(NOTHING_KEPT)
    writer = Writer(arguments, outputs.tokens, open_stream)
    if len(inputs) > 1:
        return run_several(inputs, writer, console)
    return _run_one(inputs[0], writer, console)


def _run_one(video: Input, writer: Writer, console: Console) -> int:
    tally, arguments = Tally(), writer.arguments
    with Interruption() as interruption:
        try:
            stream = interruptible(lambda: writer.open(video, tally))
            with progress(*writer.title(stream), writer.shown) as follow:
                writer.write(stream, video, tally, follow, interruption)
        except KeyboardInterrupt:
            console.say(f"interrupted after {tally.frames} frames")
            return interruption.code
    if not arguments.quiet:
        from foveate.app.summary import print_summary  # rich takes a while to import

        print_summary(tally, stream.report(), writer.files(video))
    return conclude(stream.damage, console)
