"""Why an address could not be opened, where libav's own words would lead astray."""

from __future__ import annotations

import errno
import socket
from urllib.parse import urlsplit

from av.error import FFmpegError

from foveate.pipeline.sources.decoding import reason_of


def reason_unopened(error: Exception, url: str) -> str:
    """What ``error``, met while opening ``url``, means, and what to do about it; without the address.

    Asks for the host's address, where that may have been what failed; this may take seconds.
    """
    if not isinstance(error, FFmpegError):
        return "the address cannot be encoded; check the address"
    if error.errno == errno.EIO and not _is_known(url):
        return "its host name is not known; check the address and the network"
    if error.errno == errno.EPROTONOSUPPORT and url.startswith("rtsp"):
        return "the server refuses this live.transport; choose the other one (--transport)"
    return f"{reason_of(error)}; check the address"


def _is_known(url: str) -> bool:
    """Whether the host has an address; True as well where ``url`` names none."""
    try:
        host = urlsplit(url).hostname
        return host is None or bool(socket.getaddrinfo(host, None))
    except (OSError, ValueError):
        return False
