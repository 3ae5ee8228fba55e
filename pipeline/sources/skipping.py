"""Decoding only what is sampled: which packets of a file have to be decoded for the pictures that are wanted.

The packets have the times and the order of all pictures, so that clock and Sampling decide beforehand, exactly as they
would on decoded pictures. A wanted picture needs the packets from the last entry point before it on, except
those that no other picture refers to.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, groupby, islice

from av.error import FFmpegError
from av.packet import Packet
from av.video.stream import VideoStream

from foveate.pipeline.errors import SourceError
from foveate.pipeline.frames import Damage
from foveate.pipeline.sources.clock import Stamped, timed
from foveate.pipeline.sources.coded import CodedPictures, Role
from foveate.pipeline.sources.decoding import Feed, SoughtFeed, reason_of, record_damage
from foveate.pipeline.sources.sampling import Decision, Sampling

_REORDERED = 16  # pictures by which decoding and presentation order may differ (ITU-T H.264, A.3.1; H.265, A.4)
_MOST_HELD = 64 << 20  # bytes of packets that wait for a decision; beyond, they are decoded in any case
_CHECKED = 32  # packets that must all have timestamps for any to be relied on


@dataclass(slots=True, eq=False)
class _Coded:
    """One packet, in decoding order; without its data once it is known not to be needed."""

    number: int
    pts: int
    duration: int  # ticks; 0 where it is not known
    shown: bool
    role: Role
    packet: Packet[VideoStream] | None


class Skipper:
    """Chooses the packets of one feed. Iterated once.

    ``runs`` yields feeds of what has to be decoded, one after the other; between two of them the decoder must be
    flushed. Each decoded picture is then passed to ``take``, which says whether it is sampled.
    """

    def __init__(self, feed: SoughtFeed, sampling: Sampling, origin: int, nominal: float, damage: Damage) -> None:
        """``feed`` has not been read yet. ``origin`` is the timestamp of its first picture, ``nominal`` its duration.

        ``nominal`` counts in seconds, where nothing else is known. Raises FFmpegError.
        """
        self._feed, self._damage, self._origin = feed, damage, origin
        self._kinds = CodedPictures(feed.decoder)
        self._numerator, self._denominator = feed.time_base.as_integer_ratio()
        start = int(sampling.start * self._denominator // self._numerator)
        self._before, self._packets = feed.packets_from(origin + start, self._begins) if start else (0, feed.packets())
        self._pending: deque[_Coded] = deque()
        self._held = 0  # bytes in it
        self._entries: list[_Coded] = []
        # Number of the packet up to which all that is needed was given to the decoder.
        self._given = -2 if self._before else -1
        self._run = 0
        self._wanted: dict[int, Decision[_Coded]] = {}  # by timestamp: those whose pictures have not come out yet
        self._taken = 0  # number of the latest sampled picture that was decoded
        self.decided = self._before  # number of the first picture that was not decided on yet
        self._decisions = sampling.decide(
            timed(self._stamped(), nominal, feed.spliced, from_beginning=not self._before), first=self._before
        )
        self.exhausted = False  # the feed was read to its end

    def _begins(self, packet: Packet[VideoStream]) -> bool:
        return self._kinds.role(packet) == "entry"

    @property
    def is_possible(self) -> bool:
        """Whether the codec is known, and each packet has a time of its own. To be called before ``runs``.

        Raises FFmpegError where the first packets cannot be read.
        """
        ahead = list(islice(self._packets, _CHECKED))
        self._packets = chain(ahead, self._packets)
        packets = [packet for packet in ahead if packet.size]
        times = [packet.pts for packet in packets if packet.pts is not None]
        return self._kinds.are_known and len(set(times)) == len(packets) and self._are_in_step(times)

    def _are_in_step(self, times: list[int]) -> bool:
        """Whether reordered pictures have reordered times; otherwise the times are in decoding order."""
        decoder = self._feed.decoder
        return not (decoder.name in ("h264", "hevc") and decoder.has_b_frames and times == sorted(times))

    def runs(self) -> Iterator[Run]:
        """Yield the packets that have to be decoded, in runs before which the decoder must be flushed."""
        for _, packets in groupby(self._needed(), lambda given: given[0]):
            yield Run(self, self._feed, (packet for _, packet in packets))

    def take(self, pts: int | None) -> Decision[_Coded] | None:
        """The decision on a decoded picture if it is sampled, else None.

        Of damaged streams, pictures may come out of the decoder behind later ones: these are lost.
        """
        taken = None if pts is None else self._wanted.pop(pts, None)
        if taken is None:
            return None
        if taken.number < self._taken:
            record_damage(self._damage, "a picture was decoded too late")
            return None
        self._taken = taken.number
        return taken

    def is_followed(self) -> bool:
        """Once all runs are decoded: whether another stream continues the video, for which nothing is decided yet."""
        try:
            following = self._feed.following() if self.exhausted else None
        except SourceError:
            return False
        if following is not None:
            following.close()
        return following is not None

    def finish(self) -> None:
        """Once all runs are decoded: count wanted pictures that could not be decoded."""
        lost = len(self._wanted) - self._damage.frames
        if lost > 0:
            record_damage(self._damage, "pictures could not be decoded", lost)
        reason = self._feed.shortfall() if self.exhausted else None
        if reason is not None:
            record_damage(self._damage, reason, max((self._feed.frames or 0) - self.decided, 1))

    def _needed(self) -> Iterator[tuple[int, Packet[VideoStream]]]:
        """Packets in decoding order, each with the number of its run."""
        for decision in self._decisions:
            coded, self.decided = decision.picture.item, decision.number + 1
            entry = self._entry_before(coded)
            self._forget(entry.number)
            if decision.wanted:
                self._wanted[coded.pts] = decision
            elif coded.role == "other":
                self._drop(coded)
            if decision.wanted or self._held > _MOST_HELD:
                yield from self._up_to(coded, entry)

    def _up_to(self, coded: _Coded, entry: _Coded) -> Iterator[tuple[int, Packet[VideoStream]]]:
        """The packets needed for a picture and not yet yielded; decoding begins at ``entry``."""
        anew = entry.number > self._given + 1
        if anew and entry.packet is not None and self._kinds.needs_flush(entry.packet):
            self._run += 1
        while self._pending and self._pending[0].number <= coded.number:
            given = self._pending.popleft()
            self._given = given.number
            leading = anew and given.pts < entry.pts  # shown before the entry, by pictures that were passed over
            if given.packet is not None and not leading:
                yield self._run, given.packet
            self._drop(given)

    def _entry_before(self, coded: _Coded) -> _Coded:
        """Where decoding must begin for this picture: the last entry that is neither decoded nor shown after it."""
        at = bisect_right(self._entries, coded.number, key=lambda entry: entry.number)
        while at > 1 and self._entries[at - 1].pts > coded.pts:
            at -= 1
        del self._entries[: at - 1]  # pictures are decided in the order in which they are shown
        return self._entries[0]

    def _forget(self, number: int) -> None:
        """Drop the packets before one."""
        while self._pending and self._pending[0].number < number:
            self._drop(self._pending.popleft())

    def _drop(self, coded: _Coded) -> None:
        if coded.packet is not None:
            self._held -= coded.packet.size
            coded.packet = None

    def _stamped(self) -> Iterator[Stamped[_Coded]]:
        """The pictures that are shown, in that order, beginning with the first that could be decoded."""
        tick, begun = float(self._feed.time_base), bool(self._before)
        for coded in self._in_order():
            begun |= coded.pts >= self._origin
            if begun and coded.shown:
                seconds = (coded.pts - self._origin) * self._numerator / self._denominator
                yield Stamped(coded, seconds, coded.duration * tick or None)

    def _in_order(self) -> Iterator[_Coded]:
        """All pictures in presentation order."""
        waiting: list[tuple[int, int, _Coded]] = []
        for coded in self._read():
            if coded.role == "entry":  # what was decoded before it is shown before it
                yield from (each for _, _, each in sorted(waiting))
                waiting = []
            heapq.heappush(waiting, (coded.pts, coded.number, coded))
            if len(waiting) > _REORDERED:
                yield heapq.heappop(waiting)[2]
        yield from (each for _, _, each in sorted(waiting))

    def _read(self) -> Iterator[_Coded]:
        number, pts = 0, self._origin
        try:
            for packet in self._packets:
                if not packet.size:
                    continue
                pts = pts + 1 if packet.pts is None else packet.pts
                role = self._kinds.role(packet) if number else "entry"
                coded = _Coded(number, pts, packet.duration or 0, not packet.is_discard, role, packet)
                self._pending.append(coded)
                self._held += packet.size
                if coded.role == "entry":
                    self._entries.append(coded)
                number += 1
                yield coded
        except FFmpegError as error:
            record_damage(self._damage, f"reading stopped: {reason_of(error)}")
        self.exhausted = True


def skipper_of(feed: SoughtFeed, sampling: Sampling, origin: int, nominal: float, damage: Damage) -> Skipper | None:
    """A Skipper, or None where the feed's packets do not tell enough; ``feed`` is then closed. See ``Skipper``."""
    try:
        skipper = Skipper(feed, sampling, origin, nominal, damage)
        if skipper.is_possible:
            return skipper
    except FFmpegError:  # decoding every picture meets it again, after those that can be read
        pass
    feed.close()
    return None


class Run:
    """A run of a feed's packets to decode without a flush. See ``decoding.Packets``."""

    frames: int | None = None

    def __init__(self, skipper: Skipper, feed: SoughtFeed, packets: Iterator[Packet[VideoStream]]) -> None:
        self.decoder = feed.decoder
        self._skipper, self._feed, self._packets = skipper, feed, packets

    def packets(self) -> Iterator[Packet[VideoStream]]:
        """Yield the packets in decoding order."""
        return self._packets

    def shortfall(self) -> str | None:
        """None: the skipper reports it at its end."""
        return None

    def tail(self, ticks: int) -> Feed | None:
        """The feed's, if that was read to its end."""
        return self._feed.tail(ticks) if self._skipper.exhausted else None
