"""What the user typed behind ``foveate live``, checked."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from foveate.app.addresses import all_resolved, hide_in_title
from foveate.app.arguments import PLACE, parsed_settings
from foveate.app.console import Console
from foveate.app.flags import live_flags
from foveate.app.quantities import seconds_in, size_or_seconds
from foveate.app.standard_output import default_outputs
from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.live.sampling import LiveSampling
from foveate.pipeline.live.target import is_live
from foveate.pipeline.plan import open_scorer
from foveate.pipeline.settings import Settings
from foveate.pipeline.settings_errors import check_count
from foveate.pipeline.sinks import Rotation
from foveate.pipeline.sinks.destination import STANDARD_OUTPUT
from foveate.pipeline.sources.address import is_network, shown
from foveate.pipeline.sources.schemes import may_end, refusal

EACH = 25  # sources of a process, where it is not said: with more, its threads wait too long for each other
_NEVER = Rotation()
_MOST_KEPT = 9_999_999  # files, whose numbers have seven digits


@dataclass(frozen=True, slots=True)
class LiveArguments:
    """One ``foveate live``."""

    addresses: tuple[str, ...]
    settings: Settings
    out: tuple[str, ...] = ()
    overlay: str | None = None
    rotation: Rotation = _NEVER
    duration: float | None = None  # seconds
    web: str | None = None  # host:port
    web_token: str | None = None  # a file
    quiet: bool = False
    processes: int = 1

    def outputs_of(self, number: int) -> tuple[str, ...]:
        """Where the tokens of source ``number``, from 0, go."""
        return tuple(name.replace(PLACE, str(number)) for name in self.out)

    def overlay_of(self, number: int) -> str | None:
        """Where its overlay goes."""
        return self.overlay and self.overlay.replace(PLACE, str(number))


def live_arguments(arguments: Sequence[str], console: Console) -> LiveArguments:
    """Parse what follows ``foveate live``. Raises SettingsError, SourceError; SystemExit(0) after the help."""
    parsed, settings = parsed_settings(live_flags, arguments, "live")
    hide_in_title(arguments)
    addresses = tuple(address for each in parsed.addresses for address in all_resolved(each))
    for address in addresses:
        console.learn(address)
        if not address.strip():
            raise SourceError("the source's address is empty; give a camera or a network address")
        if not is_live(address):
            raise _not_live(address)
    if not addresses:
        raise SettingsError("SOURCE is missing; see foveate live --help")
    LiveSampling(settings.source)
    open_scorer(settings)
    named = tuple(name for names in parsed.out for name in names)
    out = named or (() if parsed.overlay or parsed.web else default_outputs(len(addresses)))
    _check_outputs(out, parsed.overlay, len(addresses))
    return LiveArguments(
        addresses,
        settings if parsed.web is None else settings.model_copy(update={"keep_embeddings": True}),
        out,
        parsed.overlay,
        _rotation(parsed, [*out, *filter(None, [parsed.overlay])]),
        None if parsed.duration is None else seconds_in(parsed.duration, "--duration"),
        parsed.web,
        parsed.web_token,
        parsed.quiet,
        _processes(parsed.processes, len(addresses)),
    )


def _processes(wanted: int | None, sources: int) -> int:
    if wanted is None:
        return -(-sources // EACH)
    check_count("processes", wanted, 1)
    if wanted > sources:
        raise SettingsError(f"--processes must be at most the number of sources, {sources}, got {wanted}")
    return wanted


def _not_live(address: str) -> SourceError:
    if is_network(address) and not may_end(address):
        return refusal(address)
    kind = "is a file on a server" if may_end(address) else "is neither a camera nor a network address"
    return SourceError(f"{shown(address)} {kind}; give files to foveate run")


def _rotation(parsed: object, outputs: Sequence[str]) -> Rotation:
    """How files are set aside. Raises SettingsError, also where there is none."""
    rotate, keep = getattr(parsed, "rotate", None), getattr(parsed, "keep", None)
    if keep is not None:
        check_count("keep", keep, 1, _MOST_KEPT)
    size, seconds = (None, None) if rotate is None else size_or_seconds(rotate, "--rotate")
    if (rotate, keep) != (None, None) and set(outputs) <= {STANDARD_OUTPUT}:
        raise SettingsError("--rotate and --keep need an output file; name one with --out")
    return Rotation(size, seconds, keep)


def _check_outputs(out: Sequence[str], overlay: str | None, sources: int) -> None:
    """Raise SettingsError where two sources, or two outputs, would write to one file."""
    names = [*out, *filter(None, [overlay])]
    for name in names:
        if sources > 1 and PLACE not in name:
            raise SettingsError(f"output {name!r} must hold {PLACE}, the source's number: there are {sources} sources")
    places = [os.path.realpath(name) for name in names]
    if len(set(places)) < len(places):
        raise SettingsError("an output is named twice; give every output a file of its own")
