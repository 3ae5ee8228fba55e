"""Certificates of servers: how Python and libav verify them, and what is wrong where they cannot."""

import socket
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from foveate.pipeline.errors import SettingsError
from foveate.pipeline.settings import LiveSettings
from foveate.pipeline.small_files import refuse_endless

_PORTS = {"https": 443, "rtsps": 322, "rtmps": 443}


def tls_options(settings: LiveSettings) -> dict[str, str]:
    """The TLS options for libav. Raises SettingsError where ``live.ca_file`` holds no certificate."""
    if not settings.verify:
        return {"tls_verify": "0"}
    trusting(settings)
    # libav's own TLS library knows of no system-wide list; Python's does, and heeds SSL_CERT_FILE.
    authorities = settings.ca_file or ssl.get_default_verify_paths().cafile
    return {"tls_verify": "1"} | ({} if authorities is None else {"ca_file": authorities})


def trusting(settings: LiveSettings) -> ssl.SSLContext:
    """The TLS settings for Python. Raises SettingsError where ``live.ca_file`` holds no certificate."""
    try:
        if settings.ca_file is not None:
            refuse_endless(Path(settings.ca_file))
        context = ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = "it holds no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise SettingsError(f"live.ca_file {settings.ca_file!r} cannot be used: {reason}") from None
    if not settings.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def distrust(url: str, settings: LiveSettings, limit: float) -> str | None:
    """The message where the server's certificate is not trusted; None where it is, or not known within ``limit`` s.

    For use after a failure of libav, which does not report the cause.
    """
    try:
        parts = urlsplit(url)
        if not settings.verify or parts.scheme not in _PORTS or parts.hostname is None:
            return None
        with (
            socket.create_connection((parts.hostname, parts.port or _PORTS[parts.scheme]), limit) as plain,
            trusting(settings).wrap_socket(plain, server_hostname=parts.hostname),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return not_trusted(error)
    except (OSError, ValueError):
        return None


def not_trusted(error: ssl.SSLCertVerificationError) -> str:
    """The message for a certificate that was refused."""
    return (
        f"the server's certificate is not trusted: {verdict(error)}; give it in live.ca_file, or accept any "
        "certificate with live.verify = false (--live.no-verify)"
    )


def verdict(error: ssl.SSLCertVerificationError) -> str:
    """Why a certificate was refused, in OpenSSL's words."""
    return error.verify_message.lower().rstrip(".")
