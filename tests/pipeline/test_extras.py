"""The hints at what brings an optional extra: each is a command that works where Foveate came from."""

import json
import re
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from foveate.pipeline.extras import install_command

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        ({"dir_info": {"editable": True}, "url": "file:///home/a/clone"}, "pip install -e '/home/a/clone[web]'"),
        ({"dir_info": {}, "url": "file:///home/a%20b/clone"}, "pip install '/home/a b/clone[web]'"),
        (
            {"vcs_info": {"vcs": "git", "commit_id": "1"}, "url": "https://host/foveate.git"},
            "pip install 'foveate[web] @ git+https://host/foveate.git'",
        ),
        (
            {"archive_info": {}, "url": "file:///tmp/foveate-0.1.0.whl"},
            "pip install 'foveate[web] @ file:///tmp/foveate-0.1.0.whl'",
        ),
        (None, "pip install '.[web]' in a clone of Foveate's repository"),
    ],
)
def test_the_command_is_for_where_foveate_came_from(
    origin: object, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = None if origin is None else json.dumps(origin)
    found = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr(metadata, "distribution", lambda name: found)
    assert install_command("web") == command


def test_no_message_names_a_package_that_is_not_published() -> None:
    files = [path for room in ("app", "pipeline", "cuda", "bench") for path in (ROOT / room).rglob("*.py")]
    ours = re.compile(r"pip install[^\n]*(foveate|\[)")  # others are published
    hints = [path.name for path in files if ours.search(path.read_text(encoding="utf-8"))]
    assert len(files) > 100
    assert hints == ["extras.py"]
