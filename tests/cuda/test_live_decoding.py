"""Packets of live connections through a decoder on the card, and through the CPU where that cannot.

Without a card, a stand-in that decodes with PyAV takes its place.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from fractions import Fraction
from heapq import heappop, heappush
from types import SimpleNamespace
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.cuda.decode import live as under_test
from foveate.cuda.decode.annex_b import START, leading_units
from foveate.cuda.decode.geometry import CROPPED
from foveate.cuda.decode.live import DevicePicture, LiveDecoding
from foveate.pipeline.frames import Damage, LiveTimes
from foveate.pipeline.live.decoding import HostPicture
from foveate.pipeline.sources.cropping import AS_DECODED
from foveate.pipeline.sources.reading import PictureReader

GEOMETRY = PictureReader("test", AS_DECODED)


class Feed:
    """Packets as a connection brings them, and the decoder that FFmpeg makes for it."""

    bursts = False
    may_skip = False
    time_base = Fraction(1, 90_000)
    passed = 0

    def __init__(self, codec: str, packets: list[Any], extradata: bytes = b"") -> None:
        self.decoder = av.CodecContext.create(codec, "r")
        if extradata:
            self.decoder.extradata = extradata
        self._packets = packets

    def packets(self) -> Iterator[Any]:
        yield from self._packets


class StandIn:
    """Nvdec, by PyAV. ``made`` tells of each how it was asked for; ``fails`` makes so many packets fail.

    As the library does, it hands out the least timestamp that it was given, whatever packet a picture is from.
    """

    made: list[bool]
    fails: int
    loses: int = 0  # so many pictures do not come out, and nothing is said
    refuses = False

    def __init__(self, device: Any, codec: str, at_once: bool) -> None:
        if StandIn.refuses:
            raise RuntimeError("no session is left")
        self._context = av.CodecContext.create(codec, "r")
        if at_once:
            self._context.flags |= 1 << 19
        StandIn.made.append(at_once)
        self._timestamps: list[int] = []

    def decode(self, data: tuple[bytes, int] | None) -> Iterator[Any]:
        if data is not None and StandIn.fails > 0:
            StandIn.fails -= 1
            raise RuntimeError("the picture is damaged\nin detail")
        packet = None if data is None else av.Packet(data[0])
        if packet is not None and data is not None:
            heappush(self._timestamps, data[1])
        for frame in self._context.decode(packet):
            if StandIn.loses > 0:
                StandIn.loses -= 1
                continue
            luma = plane(frame)
            surface = SimpleNamespace(luma=luma, pixels=SimpleNamespace(nbytes=luma.nbytes))
            timestamp = heappop(self._timestamps)
            yield SimpleNamespace(
                pts=timestamp, width=frame.width, height=frame.height, surface=surface, chroma_row=frame.height
            )

    def close(self) -> None: ...


class NoDevice:
    index = 0

    def __init__(self, index: int) -> None: ...

    def __enter__(self) -> NoDevice:
        return self

    def __exit__(self, *_: object) -> None: ...

    def errors(self) -> NoDevice:
        return self


@pytest.fixture(params=["stand-in", pytest.param("card", marks=pytest.mark.gpu)])
def hardware(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a card decodes; else all that needs one is stood in for."""
    StandIn.made, StandIn.fails, StandIn.loses, StandIn.refuses = [], 0, 0, False
    if request.param == "card":
        return True
    stood_in(monkeypatch)
    return False


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    StandIn.made, StandIn.fails, StandIn.loses, StandIn.refuses = [], 0, 0, False
    stood_in(monkeypatch)


def stood_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "Nvdec", StandIn)
    monkeypatch.setattr(under_test, "Device", NoDevice)
    monkeypatch.setattr(under_test, "codec_problem", lambda codec, form, *_: None if form == "yuv420p" else form)
    monkeypatch.setattr(under_test, "packet_data", lambda data, pts, at_once: (data, pts))
    monkeypatch.setattr(under_test, "flush", lambda: None)


def clip(codec: str = "h264", size: tuple[int, int] = (320, 192), form: str = "yuv420p", between: int = 0) -> list[Any]:
    """Twenty packets of a moving picture, a keyframe every 10, as RTSP brings them: with start codes.

    ``between``: B-frames between others.
    """
    encoder = av.CodecContext.create({"h264": "libx264", "hevc": "libx265", "mpeg4": "mpeg4"}[codec], "w")
    encoder.width, encoder.height, encoder.pix_fmt = *size, form
    encoder.time_base, encoder.framerate, encoder.gop_size = Fraction(1, 25), Fraction(25), 10
    encoder.options = {
        "h264": {"bf": str(between)},
        "hevc": {"x265-params": f"bframes={between}:keyint=10:min-keyint=10:b-adapt=0:open-gop=0:log-level=none"},
        "mpeg4": {},
    }[codec]
    packets = [packet for frame in (*moving(size, form), None) for packet in encoder.encode(frame)]
    return [again(packet, pts=packet.pts * 3600, dts=packet.dts * 3600) for packet in packets]


def moving(size: tuple[int, int], form: str) -> Iterator[Any]:
    rows, columns = np.indices(size[::-1])
    for number in range(20):
        picture = np.stack([(rows + 3 * number) % 256, (columns * 2 + number) % 256, (rows + columns) % 256], -1)
        frame = av.VideoFrame.from_ndarray(picture.astype(np.uint8), format="rgb24").reformat(format=form)
        frame.pts, frame.time_base = number, Fraction(1, 25)
        yield frame


def cropping(packets: list[Any]) -> list[Any]:
    """The same pictures, of which the decoder is told to leave out 16 columns at the left."""
    crops = av.BitStreamFilterContext("h264_metadata=crop_left=16", "h264")
    made = [packet for each in (*packets, None) for packet in crops.filter(each and again(each))]
    return [again(packet) for packet in made]


def again(packet: Any, data: bytes | None = None, **changes: Any) -> Any:
    """The same packet, of no stream, with some changes."""
    made = av.Packet(bytes(packet) if data is None else data)
    made.pts, made.dts, made.time_base = packet.pts, packet.dts, Fraction(1, 90_000)
    made.is_keyframe = packet.is_keyframe
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def expected(packets: list[Any], codec: str = "h264") -> list[NDArray[np.uint8]]:
    """Luma as FFmpeg decodes it, in the order of presentation."""
    context = av.CodecContext.create(codec, "r")
    frames = [frame for packet in packets for frame in context.decode(again(packet))] + context.decode(None)
    return [plane(frame) for frame in frames]


def plane(frame: Any) -> NDArray[np.uint8]:
    """A copy of the luma."""
    luma = frame.planes[0]
    return np.frombuffer(memoryview(luma), np.uint8).reshape(luma.height, -1)[:, : luma.width].copy()


def luma(picture: Any, hardware: bool) -> NDArray[np.uint8]:
    """What the picture holds, wherever it was decoded."""
    if isinstance(picture, DevicePicture) and not hardware:
        return picture.decoded.surface.luma  # type: ignore[attr-defined, no-any-return]
    return np.asarray(picture.frame(GEOMETRY, 0, 0.0, False, LiveTimes(0.0, 0.0)).luma)


def through(feed: Feed, hardware: bool, damage: Damage | None = None) -> list[tuple[Any, NDArray[np.uint8]]]:
    decoding = LiveDecoding("camera")
    return [(picture, luma(picture, hardware)) for picture in decoding(feed, damage or Damage())]  # type: ignore[arg-type]


def same(found: list[tuple[Any, NDArray[np.uint8]]], wanted: list[NDArray[np.uint8]]) -> None:
    assert len(found) == len(wanted)
    for (_, mine), other in zip(found, wanted, strict=True):
        assert np.array_equal(mine, other)


@pytest.mark.parametrize("codec", ["h264", "hevc"])
@pytest.mark.parametrize("between", [0, 2])
def test_pictures_are_those_of_ffmpeg(hardware: bool, codec: str, between: int) -> None:
    """With B-frames as well, whose packets are not in the order of presentation."""
    packets = clip(codec, between=between)
    damage = Damage()
    found = through(Feed(codec, packets), hardware, damage)
    same(found, expected(packets, codec))
    assert all(isinstance(picture, DevicePicture) for picture, _ in found)
    assert [picture.pts for picture, _ in found] == sorted(packet.pts for packet in packets)
    assert damage == Damage()
    assert [picture.sample is not None for picture, _ in found] == [True] + [False] * 19
    if not hardware:
        assert StandIn.made == [between == 0]


def test_each_picture_comes_out_at_its_packet_where_none_is_reordered(hardware: bool) -> None:
    packets = clip()
    taken = 0

    class Counting(Feed):
        def packets(self) -> Iterator[Any]:
            nonlocal taken
            for packet in packets:
                taken += 1
                yield packet

    counts = [taken for _ in LiveDecoding("camera")(Counting("h264", packets), Damage())]  # type: ignore[arg-type]
    assert counts == list(range(1, 21))


def test_a_connection_that_begins_between_keyframes(hardware: bool) -> None:
    """The first keyframe of a session has no timestamp; the packets before it cannot be decoded."""
    packets = clip()
    late = [*packets[3:10], again(packets[10], pts=None, dts=None), *packets[11:]]
    found = through(Feed("h264", late), hardware)
    same(found, expected(packets[10:]))
    assert [picture.pts for picture, _ in found] == [None, *(packet.pts for packet in packets[11:])]


def without(packet: bytes, units: list[bytes]) -> bytes:
    for unit in units:
        packet = packet.replace(START + unit, b"").replace(START[1:] + unit, b"")
    return packet


def test_sets_of_the_session_description(hardware: bool) -> None:
    packets = clip()
    told = [unit for kind, unit in leading_units("h264", bytes(packets[0])) if kind in (7, 8)]
    sets = b"".join(START + unit for unit in told)
    bare = [again(packet, without(bytes(packet), told)) for packet in packets]
    assert b"\0\0\1\x67" not in bytes(bare[0])
    same(through(Feed("h264", bare, sets), hardware), expected(packets))


@pytest.mark.parametrize("options", [{"size": (480, 288)}, {}])
def test_another_format_in_the_middle(hardware: bool, options: dict[str, Any]) -> None:
    """Nothing of the one before is lost."""
    first, second = clip(between=2), clip(**options)
    damage = Damage()
    found = through(Feed("h264", [*first, *second]), hardware, damage)
    same(found, [*expected(first), *expected(second)])
    assert damage == Damage()
    if not hardware:
        assert StandIn.made == [False, True]


def test_what_the_card_cannot_decode_falls_back_and_comes_back(
    hardware: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plain, fine = clip(), clip(form="yuv444p")
    cropped = cropping(plain)
    with caplog.at_level(logging.WARNING, "foveate"):
        found = through(Feed("h264", [*plain, *cropped, *plain, *fine, *plain]), hardware)
    same(found, [*expected(plain), *expected(cropped), *expected(plain), *expected(fine), *expected(plain)])
    reasons = [picture.decoded_on_cpu for picture, _ in found]
    assert reasons[:60] == [None] * 20 + [CROPPED] * 20 + [None] * 20
    assert reasons[60] is not None
    assert reasons[80:] == [None] * 20
    assert [isinstance(picture, HostPicture) for picture, _ in found] == [reason is not None for reason in reasons]
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        f"camera: decoded on the CPU: {CROPPED}",
        "camera: decoded on the GPU again",
        f"camera: decoded on the CPU: {reasons[60]}",
        "camera: decoded on the GPU again",
    ]


def test_decoding_begins_with_what_is_current(
    stand_in: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Two rounds come while the decoder is made, in 1.6 s, and the keyframe behind them."""
    packets = [
        again(packet, pts=packet.pts + 72_000 * turn, dts=packet.dts + 72_000 * turn)
        for turn in range(3)
        for packet in clip()
    ]
    now = [1000.0]
    monkeypatch.setattr(under_test.time, "monotonic", lambda: now[0])

    class Paced(Feed):
        may_skip = True

        def packets(self) -> Iterator[Any]:
            for number, packet in enumerate(super().packets()):
                now[0] = max(now[0], 1000.0 + number / 25)
                yield packet

    class SlowlyMade(StandIn):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            now[0] += 0.6
            self.ready = False

        def decode(self, data: Any) -> Iterator[Any]:
            now[0] += 0.0 if self.ready else 1.01
            self.ready = True
            return super().decode(data)

    monkeypatch.setattr(under_test, "Nvdec", SlowlyMade)
    damage, feed = Damage(), Paced("h264", packets)
    with caplog.at_level(logging.WARNING, "foveate"):
        found = through(feed, False, damage)
    assert (len(StandIn.made), feed.passed, damage) == (1, 40, Damage())
    assert [picture.pts for picture, _ in found] == [packet.pts for packet in packets[40:]]
    same(found, expected(packets)[40:])
    assert found[0][0].sample is not None
    assert [record.getMessage() for record in caplog.records] == [
        "camera: skipped 40 pictures that came before the decoder was ready"
    ]


def test_codecs_that_the_card_is_not_asked_for(hardware: bool) -> None:
    packets = clip("mpeg4")
    feed = Feed("mpeg4", packets)
    feed.shortfall = lambda: None  # type: ignore[attr-defined]
    feed.tail = lambda ticks: None  # type: ignore[attr-defined]
    found = through(feed, hardware)
    assert len(found) == 20
    assert {picture.decoded_on_cpu for picture, _ in found} == {"live streams of mpeg4 are not decoded by the hardware"}


class Troubled(Feed):
    """Three rounds of the same packets; calls back before each packet, with its number."""

    def __init__(self, packets: list[Any], before: Callable[[int], None]) -> None:
        super().__init__("h264", [*packets, *packets, *packets])
        self._before = before

    def packets(self) -> Iterator[Any]:
        for number, packet in enumerate(super().packets()):
            self._before(number)
            yield packet


def test_a_packet_that_fails_costs_its_picture(stand_in: None) -> None:
    packets, damage = clip(), Damage()

    def before(number: int) -> None:
        StandIn.fails = int(number == 13)

    found = through(Troubled(packets, before), False, damage)
    assert (len(found), len(StandIn.made)) == (59, 1)
    assert (damage.frames, damage.messages) == (1, ["a picture could not be decoded: the picture is damaged"])


def test_pictures_that_do_not_come_out_shift_no_timestamps(stand_in: None) -> None:
    packets, damage = clip(), Damage()

    def before(number: int) -> None:
        StandIn.loses = 2 if number == 5 else StandIn.loses

    found = list(LiveDecoding("camera")(Troubled(packets, before), damage))  # type: ignore[arg-type]
    stamps = [packet.pts for packet in packets]
    assert [picture.pts for picture in found] == [*stamps[:5], *stamps[7:], *stamps, *stamps]
    assert (damage.frames, damage.messages) == (2, ["pictures could not be decoded"])


def test_nor_do_they_for_long_where_pictures_are_reordered(stand_in: None) -> None:
    """Then another decoder begins, at a keyframe."""
    packets = [again(packet, pts=packet.pts + 72_000 * turn) for turn in range(3) for packet in clip(between=2)]
    damage = Damage()

    class Losing(Feed):
        def packets(self) -> Iterator[Any]:
            for number, packet in enumerate(super().packets()):
                StandIn.loses = 25 if number == 3 else StandIn.loses
                yield packet

    found = list(LiveDecoding("camera")(Losing("h264", packets), damage))  # type: ignore[arg-type]
    assert len(found) == 35
    assert damage.frames == 25
    assert len(StandIn.made) == 2
    assert [picture.pts for picture in found[-20:]] == sorted(packet.pts for packet in packets[-20:])


def test_a_decoder_that_goes_on_failing_is_not_asked_for_a_while(
    stand_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight packets fail in the first round; the CPU goes on from the keyframe behind them, until half a minute has
    gone by, in the third."""
    packets, now = clip(), [1000.0]
    monkeypatch.setattr(under_test.time, "monotonic", lambda: now[0])

    def before(number: int) -> None:
        StandIn.fails = int(1 <= number <= 8)
        now[0] += 31 * (number == 40)

    damage = Damage()
    found = list(LiveDecoding("camera")(Troubled(packets, before), damage))  # type: ignore[arg-type]
    reasons = [picture.decoded_on_cpu for picture in found]
    assert reasons == [None] + ["the hardware decoder failed (the picture is damaged)"] * 30 + [None] * 20
    assert len(StandIn.made) == 2
    assert (damage.frames, len(damage.messages)) == (8, 1)


def test_a_decoder_that_cannot_be_made(stand_in: None) -> None:
    packets = clip()
    StandIn.refuses = True
    found = through(Feed("h264", packets), False)
    same(found, expected(packets))
    assert {picture.decoded_on_cpu for picture, _ in found} == {"the hardware decoder failed (no session is left)"}
