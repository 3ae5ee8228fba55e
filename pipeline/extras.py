"""The optional extras, and the command that installs them: Foveate is not on a package index."""

import json
from importlib import metadata
from typing import Any
from urllib.parse import unquote


def install_command(extra: str) -> str:
    """The pip command that installs ``extra``, from where Foveate was installed, or else from the folder of a clone."""
    origin = metadata.distribution("foveate").read_text("direct_url.json")
    address: dict[str, Any] = json.loads(origin) if origin else {}
    url = address.get("url", "")
    if "dir_info" in address:
        editable = "-e " if address["dir_info"].get("editable") else ""
        return f"pip install {editable}'{unquote(url).removeprefix('file://')}[{extra}]'"
    if "vcs_info" in address:
        return f"pip install 'foveate[{extra}] @ {address['vcs_info']['vcs']}+{url}'"
    if url:
        return f"pip install 'foveate[{extra}] @ {url}'"
    return f"pip install '.[{extra}]' in a clone of Foveate's repository"
