"""What is live, and how libav is told to open it."""

import re
from dataclasses import dataclass
from pathlib import Path

from foveate.pipeline.errors import SourceError
from foveate.pipeline.settings import LiveSettings
from foveate.pipeline.sources.address import is_network, shown
from foveate.pipeline.sources.schemes import SCHEMES, may_end, may_last, refusal, scheme_of

_DEVICE = re.compile(r"/dev/video\d+")
_NUMBER = re.compile(r"\d{1,3}")
_PROBE = 2_000_000  # microseconds of stream that are looked at on opening
_AS_SENT = "noparse"  # the payload of each RTP packet as it is; see rtp_pictures


@dataclass(frozen=True, slots=True)
class Target:
    """An address as libav takes it."""

    name: str  # as it may be shown
    url: str
    format: str | None
    options: dict[str, str]
    device: bool


def is_live(address: str) -> bool:
    """True for a camera number, /dev/videoN and addresses of what may be live, where no file of that name is meant.

    A file that bears the name is taken: ``./0`` or ``0``, if there is one.
    """
    if may_last(address) or _DEVICE.fullmatch(address):
        return True
    return _NUMBER.fullmatch(address) is not None and not Path(address).exists()


def refuse_live(address: str, name: str) -> None:
    """Raise SourceError, which calls the source ``name``, for a live source that cannot be a file."""
    if is_live(address) and not may_end(address):
        raise SourceError(f"{name} is a live source; give it to foveate live")


def target_of(address: str, settings: LiveSettings) -> Target:
    """How to open ``address``. Raises SourceError for what no live source can be read from, and SettingsError."""
    name = shown(address)
    if not is_network(address):
        path = f"/dev/video{address}" if _NUMBER.fullmatch(address) else address
        return Target(name, path, "v4l2", _camera_options(settings), True)
    if not may_last(address):
        raise refusal(address)
    from foveate.pipeline.sources.trust import tls_options  # and ssl with it, which files do not need

    scheme = scheme_of(address)
    options = {"protocol_whitelist": SCHEMES[scheme].protocols, "analyzeduration": str(_PROBE), "fpsprobesize": "0"}
    options |= tls_options(settings)
    if scheme.startswith("rtsp"):
        options |= {"rtsp_transport": settings.transport, "allowed_media_types": "video", "fflags": _AS_SENT}
    return Target(name, scheme + address[len(scheme) :], None, options, False)


def _camera_options(settings: LiveSettings) -> dict[str, str]:
    """For Video4Linux2: the picture's format and size, and the rate, where they are chosen."""
    chosen = {"input_format": settings.format, "video_size": settings.size}
    options = {name: value for name, value in chosen.items() if value is not None}
    return options | ({} if settings.rate is None else {"framerate": f"{settings.rate:g}"})
