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
        ({"dir_info": {"editable": True}, "url": "file://HERE/clone"}, "pip install -e 'HERE/clone[web]'"),
        ({"dir_info": {}, "url": "file://HERE/a%20b/clone"}, "pip install 'HERE/a b/clone[web]'"),
        (
            {"vcs_info": {"vcs": "git", "commit_id": "1"}, "url": "https://host/foveate.git"},
            "pip install 'foveate[web] @ git+https://host/foveate.git'",
        ),
        (
            {"archive_info": {}, "url": "file://HERE/foveate-0.1.0.whl"},
            "pip install 'foveate[web] @ file://HERE/foveate-0.1.0.whl'",
        ),
        ({"dir_info": {}, "url": "file://HERE/gone"}, "pip install '.[web]' in a clone of Foveate's repository"),
        (
            {"archive_info": {}, "url": "file://HERE/gone.whl"},
            "pip install '.[web]' in a clone of Foveate's repository",
        ),
        (None, "pip install '.[web]' in a clone of Foveate's repository"),
    ],
)
def test_the_command_is_for_where_foveate_came_from(
    origin: object, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("clone", "a b/clone", "foveate-0.1.0.whl"):
        (tmp_path / name).mkdir(parents=True)
    text = None if origin is None else json.dumps(origin).replace("HERE", str(tmp_path))
    found = SimpleNamespace(read_text=lambda name: text if name == "direct_url.json" else None)
    monkeypatch.setattr(metadata, "distribution", lambda name: found)
    assert install_command("web") == command.replace("HERE", str(tmp_path))


def test_no_message_names_a_package_that_is_not_published() -> None:
    files = [path for room in ("app", "pipeline", "cuda", "bench") for path in (ROOT / room).rglob("*.py")]
    ours = re.compile(r"pip install[^\n]*(foveate|\[)")  # others are published
    hints = [path.name for path in files if ours.search(path.read_text(encoding="utf-8"))]
    assert len(files) > 100
    assert hints == ["extras.py"]
