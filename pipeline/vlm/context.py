"""The tokens of a stream that are still current: in each cell of the picture, the newest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from foveate.pipeline.selection import PATCH, Selection, starts_scene
from foveate.pipeline.vlm.groups import check_groups

_PER_TOKEN: Final = (
    "x", "y", "lod", "score", "information", "perspective", "participation", "age", "fresh", "patches",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class GroupList:
    """N groups of tokens, in the order in which they were given."""

    number: NDArray[np.int64]  # [N], ascending: how many groups were given before it, so that it is never used again
    frame: NDArray[np.int64]  # [N]: ``index`` of its Selection
    group: NDArray[np.int64]  # [N]: which group of that Selection, in the Selection's order

    def __len__(self) -> int:
        return len(self.number)

    def __getitem__(self, chosen: NDArray[Any]) -> GroupList:
        """The selected groups."""
        return GroupList(self.number[chosen], self.frame[chosen], self.group[chosen])


class Part(NamedTuple):
    """Some groups of one Selection."""

    selection: Selection  # of these groups alone; without maps, device patches and extras
    number: NDArray[np.int64]  # [G], as in GroupList
    group: NDArray[np.int64]  # [G], as in GroupList
    whole: int  # groups of the whole Selection


class _State(NamedTuple):
    """Which group is visible in each cell."""

    cells: NDArray[np.int64]  # [rows, columns]: index into ``live`` of the visible group, -1 for none
    live: GroupList
    shows: NDArray[np.int64]  # [N]: cells in which each is visible, at least 1

    @classmethod
    def of(cls, cells: NDArray[np.int64], given: GroupList) -> _State:
        """From cells that hold indices into ``given``; groups that are not visible are left out."""
        counts = np.bincount(cells.ravel() + 1, minlength=len(given) + 1)[1:]
        lives = counts > 0
        index = np.concatenate([[-1], np.where(lives, np.cumsum(lives) - 1, -1)])
        return cls(index[cells + 1], given[lives], counts[lives])

    def without(self, lives: NDArray[np.bool_]) -> _State:
        """Without the groups that do not live on, visible or not; ``lives`` is bool[N]."""
        known = np.concatenate([[False], lives])
        return _State.of(np.where(known[self.cells + 1], self.cells, -1), self.live)


class Context:
    """The live groups of the Selections so far: those that are the newest somewhere in the picture.

    A group is ``merge`` x ``merge`` tokens, one token of the language model, and lives and dies as a whole. Groups that
    later ones cover are dead, and so are all earlier ones after a keyframe other than a periodic one. So the
    live groups are never more than the picture has groups of LOD 0, whichever LODs there are, and painting them in
    order gives what painting all would give.

    With a ``limit`` at most so many live at a time. Where there would be more, those leave that show in the fewest
    cells, the oldest of these first, and those of the newest Selection last. The reader then misses what they showed
    until the place is given again, and the stream does not know: choose a limit with room, or a smaller budget.

    Not safe to use from several threads at once.
    """

    def __init__(self, limit: int | None = None, merge: int = 1, per_frame: int = 0) -> None:
        """``merge`` is the stream's ``allocation.merge``.

        ``per_frame`` is what each Selection with live groups costs of the limit besides them, such as the tokens of its
        time. At most half the limit goes there: of more Selections those leave that show in the fewest cells, the
        oldest of these first. Raises ValueError for a limit or ``merge`` below 1, and ``per_frame`` below 0.
        """
        if limit is not None and limit < 1:
            raise ValueError(f"limit must be at least 1, got {limit}")
        if merge < 1:
            raise ValueError(f"merge must be at least 1, got {merge}")
        if per_frame < 0:
            raise ValueError(f"per_frame must be at least 0, got {per_frame}")
        self._limit, self._merge, self._per_frame = limit, merge, per_frame
        self._state = _State(np.empty((0, 0), np.int64), *_NOTHING)
        self._given = self._overflow = 0
        self._sent = 0  # groups with lower numbers were sent
        self._parts: dict[int, Part] = {}  # by their Selection's first number; those with groups yet to be sent

    def __len__(self) -> int:
        """Live groups."""
        return len(self._state.live)

    @property
    def limit(self) -> int | None:
        """The most groups that may be live at a time."""
        return self._limit

    @property
    def merge(self) -> int:
        """Tokens of a group along each side."""
        return self._merge

    @property
    def overflow(self) -> int:
        """Groups dropped so far because of the limit, while still visible."""
        return self._overflow

    @property
    def held(self) -> int:
        """Groups whose patches are in memory: of those yet to be sent, at most twice the live ones."""
        return sum(len(part.number) for part in self._parts.values())

    @property
    def live(self) -> GroupList:
        """The live groups."""
        return self._state.live

    def replaces(self, selection: Selection) -> GroupList:
        """The live groups that would be dead after ``selection``. Nothing changes. Raises ValueError as ``add``."""
        return self._dead(self._within(self._after(selection)))

    def add(self, selection: Selection) -> GroupList:
        """Take in the next Selection of a stream. Returns the earlier groups that are dead now.

        Raises ValueError where its tokens are no groups of ``merge`` x ``merge``, and for another size of picture than
        before without a keyframe.
        """
        shown = self._after(selection)
        after = self._within(shown)
        dead = self._dead(after)
        count = len(selection) // self._merge**2
        self._parts[self._given] = part_of(selection, self._merge, self._given)
        self._state = after
        self._given += count
        self._overflow += len(shown.live) - len(after.live)
        self._forget_parts()
        return dead

    def unsent(self) -> list[Part]:
        """The live groups that were given since ``sent`` was last called, by Selections; those without any left out."""
        number = self._state.live.number
        shown = (_of(part, _among(part.number, number), self._merge) for part in self._parts.values())
        return [part for part in shown if len(part.number)]

    def sent(self) -> None:
        """Note that the model has received all live groups."""
        self._sent = self._given
        self._parts.clear()

    def _dead(self, after: _State) -> GroupList:
        before = self._state.live
        return before[~_among(before.number, after.live.number)]

    def _after(self, selection: Selection) -> _State:
        check_groups(selection, self._merge)
        cells, live, _ = self._state
        if starts_scene(selection.keyframe) or not cells.size:
            cells, live = np.full(selection.grid, -1), _NOTHING[0]
        if cells.shape != selection.grid:
            sizes = [" x ".join(map(str, grid)) for grid in (cells.shape, selection.grid)]
            raise ValueError(f"frame {selection.index} has {sizes[1]} cells, and those before it {sizes[0]}")
        count = len(selection) // self._merge**2
        return _State.of(_painted(cells, selection, self._merge, len(live)), _more(live, selection, self._given, count))

    def _within(self, after: _State) -> _State:
        """What remains within the limit."""
        limit = self._limit
        if limit is None:
            return after
        if self._per_frame:
            after = after.without(self._of_most_frames(after, max(1, limit // (2 * self._per_frame))))
            limit -= self._per_frame * len(np.unique(_first(after.live)))
        over = len(after.live) - max(limit, 0)
        if over <= 0:
            return after
        newest = after.live.number >= self._given
        lives = np.ones(len(after.live), np.bool_)
        lives[np.lexsort((after.live.number, after.shows, newest))[:over]] = False
        return after.without(lives)

    def _of_most_frames(self, after: _State, most: int) -> NDArray[np.bool_]:
        """Which groups, bool[N], are of the ``most`` Selections that show in the most cells, or of the newest one."""
        first, frame = np.unique(_first(after.live), return_inverse=True)  # ascending
        shows = np.bincount(frame, after.shows, len(first))
        lives = np.ones(len(first), np.bool_)
        lives[np.lexsort((first, shows, first == self._given))[: max(0, len(first) - most)]] = False
        return lives[frame]

    def _forget_parts(self) -> None:
        """Keep the patches of at most twice as many groups as are live."""
        live = self._state.live
        first = _first(live)[live.number >= self._sent]  # ascending
        starts = np.flatnonzero(np.diff(first, prepend=-1))
        counts = dict(zip(first[starts].tolist(), np.diff(starts, append=len(first)).tolist(), strict=True))
        for key, part in list(self._parts.items()):
            if key not in counts:
                del self._parts[key]
            elif 2 * counts[key] < len(part.number):
                self._parts[key] = _of(part, _among(part.number, live.number), self._merge)


_NOTHING: Final = (GroupList(*[np.empty(0, np.int64)] * 3), np.empty(0, np.int64))


def _first(given: GroupList) -> NDArray[np.int64]:
    """The number of the first group of each group's Selection, [N], ascending."""
    return given.number - given.group


def _among(numbers: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of ``numbers`` are among ``others``; both ascending. Many times faster than numpy.isin()."""
    at = np.searchsorted(others, numbers)
    found = at < len(others)
    found[found] = others[at[found]] == numbers[found]
    return found


def _more(live: GroupList, selection: Selection, given: int, count: int) -> GroupList:
    group = np.arange(count)
    added = given + group, np.full(count, selection.index), group
    before = live.number, live.frame, live.group
    return GroupList(*(np.concatenate(each) for each in zip(before, added, strict=True)))


def _painted(cells: NDArray[np.int64], selection: Selection, merge: int, first: int) -> NDArray[np.int64]:
    """A copy of ``cells``, each group of ``selection`` written over the cells that it covers, from ``first`` on.

    Coarse groups come first; those of one LOD do not overlap.
    """
    cells, each = cells.copy(), merge * merge
    lods = selection.lod[::each].astype(np.int64)
    rows, columns = ((centre[::each] // (PATCH << lods)) << lods for centre in (selection.y, selection.x))
    for lod in np.unique(lods)[::-1].tolist():
        at = np.flatnonzero(lods == lod)
        reach = np.arange(merge << lod)
        row = np.minimum(rows[at, None] + reach, cells.shape[0] - 1)
        column = np.minimum(columns[at, None] + reach, cells.shape[1] - 1)
        cells[row[:, :, None], column[:, None, :]] = (first + at)[:, None, None]
    return cells


def part_of(selection: Selection, merge: int, given: int) -> Part:
    """All groups of a Selection, behind ``given`` earlier ones."""
    group = np.arange(len(selection) // merge**2)
    return Part(
        replace(selection, device_patches=None, embeddings=None, maps={}, extras={}), given + group, group, len(group)
    )


def _of(part: Part, chosen: NDArray[np.bool_], merge: int) -> Part:
    """Some groups of a Part; ``chosen`` is bool[G]."""
    tokens = np.repeat(chosen, merge * merge)
    values = {name: getattr(part.selection, name) for name in _PER_TOKEN}
    kept: dict[str, Any] = {name: None if value is None else value[tokens] for name, value in values.items()}
    return Part(replace(part.selection, **kept), part.number[chosen], part.group[chosen], part.whole)
