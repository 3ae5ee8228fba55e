"""A file of answers in JSON lines; a second run adds only the missing ones."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self

from foveate.bench.cases.model_inputs import Method
from foveate.pipeline.errors import SinkError, SourceError

_KEY: Final = ("question", "method", "budget")


class Answers:
    """The answers so far, by question and method. The first line of the file identifies model and questions."""

    def __init__(self, path: Path, about: Mapping[str, Any]) -> None:
        """Open a file, or begin one. A last line that an interrupted run left incomplete is overwritten.

        Raises SourceError for a file of something else, or of another model, file of questions or sampling than
        ``about``; SinkError where it cannot be written.
        """
        self._path = path
        self._known: dict[tuple[Any, ...], dict[str, Any]] = {}
        try:
            self._file = path.open("a+b")
        except OSError as error:
            raise SinkError(f"cannot write {path}: {error.strerror}") from error
        try:
            self._take(about)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def get(self, question: str, method: Method) -> dict[str, Any] | None:
        """An earlier answer; None if there is none."""
        return self._known.get((question, *method))

    def add(self, answer: dict[str, Any]) -> None:
        """Append one, with the fields ``question``, ``method`` and ``budget``. Raises SinkError."""
        self._write(answer)
        self._known[tuple(answer[name] for name in _KEY)] = answer

    def _take(self, about: Mapping[str, Any]) -> None:
        self._file.seek(0)
        lines = self._file.read().splitlines(keepends=True)
        if lines and not lines[-1].endswith(b"\n"):
            self._file.truncate(sum(map(len, lines[:-1])))
            lines.pop()
        if not lines:
            self._write(about)
            return
        try:
            first, *others = map(json.loads, lines)
            self._known = {tuple(each[name] for name in _KEY): each for each in others}
        except (ValueError, KeyError, TypeError):
            raise SourceError(f"{self._path} is no file of answers; name another with --answers") from None
        if first != about:
            other = [name for name in about if not isinstance(first, dict) or first.get(name) != about[name]]
            raise SourceError(
                f"{self._path} holds answers with another {', '.join(other) or 'set of fields'}; name another file "
                "with --answers"
            )

    def _write(self, line: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise SinkError(f"cannot write {self._path}: {error.strerror}") from error
