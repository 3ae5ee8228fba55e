"""Prompts in which chosen groups stand for whole pictures, and which of the whole prompt's positions they keep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Part(NamedTuple):
    """One picture or video in a prompt."""

    offset: int  # where it begins in the prompt
    chosen: NDArray[np.int64] | None = None  # [G], ascending: which groups of the whole picture are there; None: all
    groups: int = 0  # of the whole picture, where some are chosen


class WholePrompt(NamedTuple):
    """The prompt of the whole pictures."""

    tokens: list[int]
    kept: NDArray[np.bool_]  # [len(tokens)]: which of them the prompt has
    offsets: list[int]  # where each part begins


def whole_prompt(tokens: Sequence[int], parts: Sequence[Part]) -> WholePrompt:
    """The prompt ``tokens``, which holds an image token for each chosen group, with all groups of each picture.

    ``parts`` are all pictures and videos of it, in order.
    """
    whole: list[int] = []
    kept: list[NDArray[np.bool_]] = []
    offsets: list[int] = []
    done = 0
    for offset, chosen, groups in parts:
        whole += tokens[done:offset]
        kept.append(np.ones(offset - done, np.bool_))
        offsets.append(len(whole))
        done = offset
        if chosen is not None:
            whole += [tokens[offset]] * groups
            kept.append(np.isin(np.arange(groups), chosen))
            done += len(chosen)
    whole += tokens[done:]
    kept.append(np.ones(len(tokens) - done, np.bool_))
    return WholePrompt(whole, np.concatenate(kept), offsets)
