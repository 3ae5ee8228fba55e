"""What a question asks to look for: its words that name attributes."""

from __future__ import annotations

import re

from foveate.pipeline.attributes.vocabulary import VOCABULARY, read

_WORD = re.compile(r"\w+")


def queries_in(question: str) -> tuple[str, ...]:
    """The queries for the attributes encoder: one of all words that it knows, or one of each if two exclude each other.

    "Who is moving on the left?" asks for "moving left", "Is the red or the blue car faster?" for "red" and for "blue".
    """
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(question))
    known = [word for word in words if word in VOCABULARY]
    if not known:
        return ()
    together = " ".join(known)
    return (together,) if read(together).terms else tuple(known)
