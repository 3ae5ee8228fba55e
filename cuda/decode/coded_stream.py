"""The packets of a live connection as the hardware takes them, from the first on at which decoding can begin."""

from dataclasses import dataclass
from typing import Final

from foveate.cuda.decode.annex_b import SEQUENCE, START, AnnexB, leading_units, unit_type
from foveate.cuda.decode.geometry import GeometryWatch
from foveate.cuda.decode.sequence import sequence_of

_SETS: Final = {"h264": {7, 8}, "hevc": {32, 33, 34}}  # types of parameter sets


@dataclass(frozen=True, slots=True)
class Unit:
    """One packet in Annex B form."""

    data: bytes
    keyframe: bool  # decoding can begin here; parameter sets are in it
    begins: bool  # the first keyframe, or the first behind another sequence parameter set
    reorders: bool  # pictures may be shown in another order than they are decoded in
    problem: str | None  # what its format asks for that the hardware does not do


class CodedStream:
    """Converts the packets of one connection, of H.264 or HEVC; one after the other."""

    def __init__(self, codec: str, configuration: bytes) -> None:
        """``configuration`` is what is told of the stream beside its packets, as for AnnexB. Raises ValueError."""
        self._codec = codec
        self._form = AnnexB(codec, configuration)
        self._sets = self._form.parameter_sets  # the latest, each behind a start code
        self._watch = GeometryWatch(codec)
        self._problem: str | None = None
        self._format: bytes | None = None  # the sequence parameter set; None: no keyframe came yet
        self._reorders = True

    def take(self, packet: bytes, keyframe: bool) -> Unit | None:
        """The packet; None before the first keyframe. Raises ValueError for what is no packet of the codec.

        ``keyframe`` is what the demultiplexer says. Nothing begins at one to which no parameter sets are known.
        """
        data = self._form.convert(packet)
        sets = [unit for kind, unit in leading_units(self._codec, data) if kind in _SETS[self._codec]]
        sequence = self._sequence(sets)
        if sequence is not None:
            self._sets = b"".join(START + unit for unit in sets)
        elif keyframe:
            data = self._sets + data
            sequence = self._sequence([unit for _, unit in leading_units(self._codec, data)])
        if not keyframe or sequence is None:
            return None if self._format is None else self._unit(data, False, False)
        begins, self._format = sequence != self._format, sequence
        if begins:
            told = sequence_of(self._codec, sequence)
            self._reorders = told is None or told.reorders
        self._problem = self._watch.problem(data)
        return self._unit(data, True, begins)

    def begin_anew(self) -> None:
        """Drop packets up to the next keyframe, which begins then."""
        self._format = None

    def _unit(self, data: bytes, keyframe: bool, begins: bool) -> Unit:
        return Unit(data, keyframe, begins, self._reorders, self._problem)

    def _sequence(self, units: list[bytes]) -> bytes | None:
        """The first sequence parameter set among some units."""
        return next((unit for unit in units if unit_type(self._codec, unit) == SEQUENCE[self._codec]), None)
