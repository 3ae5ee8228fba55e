"""The optional extras, and the command that installs them: Foveate is not on a package index."""

import json
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote


def install_command(extra: str) -> str:
    """The pip command that installs ``extra``, from where Foveate was installed, or else from the folder of a clone."""
    origin = metadata.distribution("foveate").read_text("direct_url.json")
    address: dict[str, Any] = json.loads(origin) if origin else {}
    url = address.get("url", "")
    path = unquote(url).removeprefix("file://")
    if not url or (path != unquote(url) and not Path(path).exists()):  # as in an image, which is built from a folder
        return f"pip install '.[{extra}]' in a clone of Foveate's repository"
    if "dir_info" in address:
        editable = "-e " if address["dir_info"].get("editable") else ""
        return f"pip install {editable}'{path}[{extra}]'"
    if "vcs_info" in address:
        return f"pip install 'foveate[{extra}] @ {address['vcs_info']['vcs']}+{url}'"
    return f"pip install 'foveate[{extra}] @ {url}'"
