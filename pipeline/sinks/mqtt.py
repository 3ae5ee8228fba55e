"""MQTT: a short record of each frame to a topic of a broker; needs paho-mqtt."""

import logging
import ssl
import threading
from importlib.util import find_spec
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import numpy as np
import orjson

from foveate.pipeline.errors import SettingsError, SinkError
from foveate.pipeline.extras import install_command
from foveate.pipeline.frames import FrameView
from foveate.pipeline.native.regions import label_regions
from foveate.pipeline.selection import PATCH, Header, Selection
from foveate.pipeline.sources.address import shown
from foveate.pipeline.sources.trust import verdict
from foveate.pipeline.spec.query_prior import FULL_MATCH

_LOG = logging.getLogger("foveate")

_PORTS: Final = {"mqtt": 1883, "mqtts": 8883}  # registered with IANA
_MOST_WAITING: Final = 256  # records
_MOST_BOXES: Final = 32  # of a record
_PATIENCE: Final = 5.0  # seconds to connect, and for the last records
_PAUSES: Final = (1, 30)  # seconds between attempts to connect again, growing
_OTHER_NAME: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL


class MqttSink:
    """Publishes a record of each frame (QoS 0), and never waits for the broker while frames come.

    The network has a thread of its own, which connects again by itself. Records that cannot be sent, or for which there
    is no room, are dropped and counted.
    """

    needs_patches = False
    needs_heat = False
    needs_query = True

    def __init__(self, address: str) -> None:
        """``mqtt://[user:password@]host[:port]/topic``, or ``mqtts://``. Raises SettingsError."""
        self._name = shown(address)
        try:
            parts = urlsplit(address)
        except ValueError:
            raise SettingsError(f"output {self._name} is not an address; check its host and port") from None
        self._topic = unquote(parts.path.removeprefix("/"))
        try:
            self._place = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        except ValueError:
            raise SettingsError(f"output {self._name} has a port that is no number from 0 to 65535") from None
        if not self._place[0] or not self._topic or parts.query or parts.fragment or set("+#\0") & set(self._topic):
            raise SettingsError(f"output {self._name} must be mqtt://HOST[:PORT]/TOPIC, without + and # in the topic")
        self._login = parts.username, parts.password
        self._secure = parts.scheme == "mqtts"
        self._client: Any = None
        self._changed = threading.Condition()  # of what follows
        self._refusal: str | None = None
        self._connected = False
        self._waiting = 0  # records that are not sent yet
        self.dropped = 0  # records

    def open(self, header: Header) -> None:
        """Connect. Raises SinkError where there is no broker, or it refuses, or paho-mqtt is missing."""
        if find_spec("paho") is None:
            raise SinkError(f"cannot write {self._name}: MQTT needs paho-mqtt: {install_command('mqtt')}")
        client = self._new_client()
        try:
            client.connect(*self._place)
        except ssl.SSLCertVerificationError as error:
            raise SinkError(f"cannot write {self._name}: {_not_trusted(error)}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            speaks = ", and does it speak TLS on that port" if self._secure else ""
            raise SinkError(f"cannot write {self._name}: {reason}; is the broker running there{speaks}?") from error
        self._client = client
        client.loop_start()
        with self._changed:
            answered = self._changed.wait_for(lambda: self._connected or self._refusal is not None, _PATIENCE)
        if not answered or self._refusal is not None:
            self._end()
            raise SinkError(f"cannot write {self._name}: {self._refusal or 'the broker does not answer'}")

    def write(self, frame: FrameView, selection: Selection) -> None:
        """Hand one record to the network's thread, or drop it."""
        assert self._client is not None, "the sink is not open"
        record = orjson.dumps(short_record(selection), option=orjson.OPT_SERIALIZE_NUMPY)
        with self._changed:
            room = self._connected and self._waiting < _MOST_WAITING
            self._waiting += room
            self.dropped += not room
        if room and self._client.publish(self._topic, record).rc != 0:
            self._sent(lost=True)

    def close(self) -> None:
        """Wait a little for the last records, disconnect, and say how many records were dropped."""
        if self._client is None:
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, _PATIENCE)
            self.dropped += self._waiting
            self._waiting = 0
        self._end()
        if self.dropped:
            _LOG.warning("%s: %d records were dropped: the broker did not take them in time", self._name, self.dropped)

    def _new_client(self) -> Any:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion

        client = Client(CallbackAPIVersion.VERSION2)
        user, password = (None if part is None else unquote(part) for part in self._login)
        if user is not None:
            client.username_pw_set(user, password)
        if self._secure:
            client.tls_set()
        client.connect_timeout = _PATIENCE
        client.reconnect_delay_set(*_PAUSES)
        client.on_connect = lambda _client, _data, _flags, reason, _properties: self._answered(reason)
        client.on_disconnect = lambda *_: self._lost()
        client.on_publish = lambda *_: self._sent()
        return client

    def _answered(self, reason: Any) -> None:
        with self._changed:
            self._connected = not reason.is_failure
            self._refusal = f"the broker refuses: {reason}" if reason.is_failure else None
            self._changed.notify_all()

    def _lost(self) -> None:
        """The connection ended: what had not been sent is lost with it."""
        with self._changed:
            if not self._connected and self._refusal is None:
                self._refusal = "the broker closes the connection at once; a port for TLS needs mqtts://"
            self._connected = False
            self.dropped += self._waiting
            self._waiting = 0
            self._changed.notify_all()

    def _sent(self, *, lost: bool = False) -> None:
        with self._changed:
            counted = self._waiting > 0  # else its connection is lost, and it was counted then
            self._waiting -= counted
            self.dropped += lost and counted
            self._changed.notify_all()

    def _end(self) -> None:
        client, self._client = self._client, None
        client.disconnect()
        client.loop_stop()


def _not_trusted(error: ssl.SSLCertVerificationError) -> str:
    """The message for a certificate that was refused."""
    if error.verify_code in _OTHER_NAME:
        advice = "use the host name that it was made out to"
    else:
        advice = "name a PEM file with the certificate of its authority in the environment variable SSL_CERT_FILE"
    return f"the broker's certificate is not trusted: {verdict(error)}; {advice}"


def short_record(selection: Selection) -> dict[str, Any]:
    """What is published of a frame, for orjson; ``boxes`` where the Selection has the map "query"."""
    record: dict[str, Any] = {
        "index": selection.index,
        "time": round(selection.time, 6),
        "width": selection.width,
        "height": selection.height,
        "keyframe": selection.keyframe is not None,
        "tokens": len(selection),
        "fresh": int(selection.fresh.sum()),
        "changed": round(float(selection.changed), 6),
    }
    if "captured" in selection.extras:
        record["captured"] = selection.extras["captured"]
    if "query" in selection.maps:
        record["boxes"] = found_boxes(selection)
    return record


def found_boxes(selection: Selection) -> list[list[int]]:
    """Where the query is found: [left, top, right, bottom] in pixels of each connected region of cells that match.

    The largest regions first, 32 at most. Cells match from FULL_MATCH on; diagonal neighbours are connected.
    """
    rows, columns = selection.grid
    relevance = np.ascontiguousarray(selection.maps["query"][:rows, :columns])
    regions = label_regions([relevance], np.ones((rows, columns), np.bool_), FULL_MATCH)
    measures = regions.measures[1:]
    largest = measures[np.argsort(-measures[:, 0], kind="stable")[:_MOST_BOXES], 1:5]
    boxes = (largest + np.array([0, 0, 1, 1])) * PATCH
    most = selection.width, selection.height
    clipped: list[list[int]] = np.minimum(boxes, most + most).tolist()
    return clipped
