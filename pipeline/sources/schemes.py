"""Which network addresses can be read: as files that have an end, live, or both; and what to do about the others."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote

from foveate.pipeline.errors import SourceError
from foveate.pipeline.sources.address import is_network, shown


class Scheme(NamedTuple):
    """What addresses of a scheme may be, and which protocols libav may follow them to: never a local file."""

    ends: bool  # a file, read from its first picture to its last
    lasts: bool  # a live stream
    protocols: str = ""


_RTSP: Final = Scheme(False, True, "rtsp,rtsps,tcp,tls,udp,rtp,srtp,crypto")
_HTTP: Final = Scheme(True, True, "http,https,tcp,tls,crypto,data")
SCHEMES: Final[Mapping[str, Scheme]] = {
    "http": _HTTP,
    "https": _HTTP,
    "ftp": Scheme(True, False),
    "rtsp": _RTSP,
    "rtsps": _RTSP,
    "rtmp": Scheme(False, True, "rtmp,tcp"),
    "rtmps": Scheme(False, True, "rtmps,tls,tcp"),
    "udp": Scheme(False, True, "udp"),
    "srt": Scheme(False, True, "srt,udp"),
}
_PRESIGNED: Final = "give a presigned https:// address of the object"
_FETCH: Final = "download the file first"
_ADVICE: Final[Mapping[str, str]] = {
    "s3": f"{_PRESIGNED} (aws s3 presign)",
    "gs": f"{_PRESIGNED} (gcloud storage sign-url)",
    "az": f"{_PRESIGNED} (with a SAS token)",
    "azure": f"{_PRESIGNED} (with a SAS token)",
    "hf": "give its https://huggingface.co/... address",
    "sftp": f"{_FETCH} (sftp), or mount the folder (sshfs)",
    "scp": f"{_FETCH} (scp)",
    "ftps": f"{_FETCH} (curl)",
    "smb": "mount the share, and give the path",
    "rtp": "give the rtsp:// address, or the stream as MPEG-TS by udp://",
}
_FILE: Final = "file://"


def scheme_of(address: str) -> str:
    """The scheme before ``://``, in lower case; empty if it is not a network address."""
    return address.partition("://")[0].lower() if is_network(address) else ""


def may_end(address: str) -> bool:
    """True for a network address that may be a file."""
    scheme = SCHEMES.get(scheme_of(address))
    return scheme is not None and scheme.ends


def may_last(address: str) -> bool:
    """True for a network address that may be a live stream."""
    scheme = SCHEMES.get(scheme_of(address))
    return scheme is not None and scheme.lasts


def refusal(address: str) -> SourceError:
    """Why a network address cannot be read, and what to do."""
    scheme = scheme_of(address)
    advice = _ADVICE.get(scheme) or f"give one that begins with {', '.join(f'{each}://' for each in SCHEMES)}"
    return SourceError(f"{shown(address)}: {scheme}:// cannot be read; {advice}")


def local(address: str) -> str:
    """The path of a ``file://`` address (RFC 8089); any other address as it is. Raises SourceError for another host."""
    if not address.lower().startswith(_FILE):
        return address
    host, slash, path = address[len(_FILE) :].partition("/")
    if host.lower() not in ("", "localhost") or not slash:
        raise SourceError(f"{shown(address)}: names the host {host!r}; write file:///PATH, with three slashes")
    literal = Path(slash + path)
    return str(literal) if literal.exists() else slash + unquote(path)
