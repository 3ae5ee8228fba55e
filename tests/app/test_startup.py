"""A command imports what it needs: users wait for the rest at every start."""

import subprocess
import sys
from pathlib import Path

CODE = """
import sys
from foveate.app.main import main
code = main(sys.argv[1:])
print(*sys.modules, file=sys.stderr)
sys.exit(code)
"""
OUTPUTS = ("mqtt", "parquet", "shards", "recording.sink", "report.sink", "overlay.picture", "channel_sheet")
NEVER = {
    *(f"foveate.pipeline.sinks.{name}" for name in OUTPUTS),
    *("foveate.pipeline.sources.remote.feed", "foveate.pipeline.async_iteration", "foveate.pipeline.corpus.build"),
    *("foveate.app.live", "foveate.app.corpus", "foveate.app.ask", "foveate.app.web", "foveate.bench", "pycuda"),
    *("torch", "transformers", "pyarrow", "safetensors", "rerun", "paho", "ray", "uvicorn", "starlette"),
    *("asyncio", "ftplib", "http.client", "http.server", "ssl", "typeguard", "unittest", "rich.progress"),
}


def imported_by(*arguments: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], check=True, timeout=120, capture_output=True, text=True
    )
    return set(ended.stderr.splitlines()[-1].split())


def test_a_plain_run(samples: Path, tmp_path: Path) -> None:
    clip, out = str(samples / "tree.mp4"), tmp_path / "tokens.jsonl"
    modules = imported_by("run", clip, "--frames", "2", "--engine", "cpu", "--out", str(out))
    assert len(out.read_text(encoding="utf-8").splitlines()) == 3
    assert {"foveate.pipeline.sinks.json_lines", "foveate.app.summary", "av", "cv2"} <= modules
    assert sorted(modules & NEVER) == []


def test_help_brings_no_decoder() -> None:
    modules = imported_by("run", "--help")
    assert "foveate.app.arguments" in modules
    assert sorted(modules & (NEVER | {"av", "cv2", "rich"})) == []


def test_the_list_of_commands_brings_no_settings() -> None:
    modules = imported_by("--help")
    assert "foveate.app.main" in modules
    assert sorted(modules & {"numpy", "pydantic", "tyro"}) == []
