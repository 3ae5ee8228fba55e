"""The page of ``foveate live``, in a real browser, and what programs ask for beside it."""

import http.client
import json
import re
import shutil
import signal
import socket
import struct
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from playwright.sync_api import Page, Route, sync_playwright

from tests.waiting import wait_for

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TOKEN = "a-long-token-0123"
REFUSED = re.compile("status of (401|422)")
WRITTEN = """(id) => {
    const field = document.getElementById(id);
    const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value");
    window.written = [];
    Object.defineProperty(field, "value", { get, set(value) { window.written.push(value); set.call(field, value); } });
}"""  # notes what a page writes into a field
COLOURS = [[255, 214, 64], [92, 232, 132], [56, 196, 244], [118, 136, 255], [170, 128, 214]]  # a token's, by its LOD


class Live:
    """A ``foveate live`` with its page; ``also`` are further addresses."""

    def __init__(self, start: Any, address: str, folder: Path, *flags: str, also: Sequence[str] = ()) -> None:
        self.file = folder / ("tokens-{}.jsonl" if also else "tokens.jsonl")
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = start(
                "live", address, *also, "--web", "127.0.0.1:0", "-o", str(self.file), *flags, stderr=log
            )
        self.url = self._url()

    def _url(self) -> str:
        limit = time.monotonic() + 20
        while (said := re.search(r"the page is at (\S+)", self.log)) is None or "streaming" not in self.log:
            assert time.monotonic() < limit, self.log
            assert self.process.poll() is None, self.log
            time.sleep(0.05)
        return said[1]

    @property
    def log(self) -> str:
        return self._log.read_text()

    def records(self) -> dict[int, dict[str, Any]]:
        """The records so far, by index. The first one comes a moment after "streaming" is said."""
        if not self.file.exists():
            return {}
        lines = self.file.read_bytes().rpartition(b"\n")[0].splitlines()[1:]
        return {record["index"]: record for record in map(json.loads, lines)}

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and body of an answer."""
        return self.ask(urllib.request.Request(self.url + path, headers=headers))

    def post(self, path: str, body: Any, kind: str = "application/json") -> tuple[int, str]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(urllib.request.Request(self.url + path, data, {"Content-Type": kind}))

    @staticmethod
    def ask(request: urllib.request.Request) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()


@pytest.fixture
def live(start: Any, mjpeg: Any, tmp_path: Path) -> Live:
    address = f"http://user:geheim77@127.0.0.1:{mjpeg.port}/stream?rate=20&key=schluessel"
    return Live(start, address, tmp_path, "--budget", "60")


@pytest.fixture
def moving(start: Any, rtsp: Any, tmp_path: Path) -> Live:
    return Live(start, rtsp()[1], tmp_path, "--budget", "60")


@pytest.fixture
def page() -> Iterator[Page]:
    """A page in a real browser; what it logs fails the test, unless the browser itself logs that it was refused."""
    if BROWSER is None:
        pytest.skip("no chromium on this machine: apt-get install chromium")
    said: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        made = browser.new_page(viewport={"width": 1280, "height": 800})
        made.on("console", lambda message: REFUSED.search(message.text) or said.append(message.text))
        made.on("pageerror", lambda error: said.append(str(error)))
        yield made
        browser.close()
    assert said == []


def waiting(page: Page, condition: Callable[[], Any]) -> None:
    """Wait for what the browser's events change: they are told only while the page is asked something."""
    wait_for(lambda: page.wait_for_timeout(50) or condition())


def shown(page: Page) -> tuple[int, int]:
    """The index and the number of tokens of the frame on the canvas."""
    data = page.locator("#picture[data-index]")
    return int(data.get_attribute("data-index") or -1), int(data.get_attribute("data-tokens") or -1)


def pause(page: Page, live: Live) -> None:
    """Pause, and wait until the canvas has the last frame."""
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    page.wait_for_timeout(500)  # the frames that were on their way
    wait_for(lambda: shown(page)[0] == max(live.records()))


def drawn(page: Page, record: dict[str, Any]) -> bool:
    """Whether the canvas, as large as the frame, shows every token of ``record`` by its left edge."""
    script = """(places) => {
        const canvas = document.getElementById("picture");
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return places.map(([x, y]) => [...data.slice(4 * (y * canvas.width + x)).slice(0, 3)]);
    }"""
    tokens = list(zip(record["x"], record["y"], record["lod"], strict=True))
    found = page.evaluate(script, [[x - (8 << lod), y - (8 << lod) + 3] for x, y, lod in tokens])
    return tokens != [] and found == [COLOURS[lod] for _, _, lod in tokens]


def test_the_picture_moves_and_the_overlay_is_that_of_its_frame(moving: Live, page: Page) -> None:
    page.goto(moving.url)
    first, _ = shown(page)
    before = page.locator("#picture").screenshot()
    wait_for(lambda: shown(page)[0] > first + 20)
    assert page.locator("#picture").screenshot() != before
    pause(page, moving)
    index, count = shown(page)
    record = moving.records()[index]
    assert count == len(record["x"]) <= 60
    assert drawn(page, record)
    page.get_by_role("button", name="Resume").click()
    wait_for(lambda: shown(page)[0] > index + 5)


def test_the_controls(moving: Live, page: Page) -> None:
    page.goto(moving.url)
    shown(page)
    page.get_by_label("Budget").fill("20")
    page.get_by_label("Keyframe interval").fill("5")
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("Applied.").wait_for()
    wait_for(lambda: shown(page)[1] <= 20)
    page.locator("#picture").click(position={"x": 100, "y": 80})
    page.get_by_role("button", name="Clear gaze").click()
    page.locator("#picture").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("Applied.").wait_for()
    index = shown(page)[0]
    wait_for(lambda: shown(page)[0] > index + 20)
    keyframes = [i for i, record in moving.records().items() if i > index and record["keyframe"]]
    assert keyframes
    assert {after - before for before, after in pairwise(keyframes)} <= {5}
    assert "streaming" in page.locator("#state").inner_text()


def test_a_query_typed_in(moving: Live, page: Page) -> None:
    """Case Q4: it counts from one frame on, and the overlay is that of the frame's record."""
    page.goto(moving.url)
    shown(page)
    page.get_by_label("Look for").fill("red, -blue:0.5")
    page.keyboard.press("Enter")
    page.get_by_role("form", name="Query").get_by_text("Applied.").wait_for()
    pause(page, moving)
    index, count = shown(page)
    records = moving.records()
    (first,) = [i for i, record in records.items() if "query" in record]
    assert records[first]["query"] == ["red", "-blue:0.5"]
    assert first <= index
    assert all(("participation" in record) == (i >= first) for i, record in records.items())
    record = records[index]
    assert count == len(record["participation"])
    assert max(record["participation"]) > 0.5  # the test picture has a red bar
    assert drawn(page, record)
    assert json.loads(moving.get("status")[1])["sources"][0]["query"] == ["red", "-blue:0.5"]
    page.reload()
    wait_for(lambda: page.get_by_label("Look for").input_value() == "red, -blue:0.5")


def test_queries_that_are_not_understood_and_none(moving: Live, page: Page) -> None:
    page.goto(moving.url)
    shown(page)
    form, field = page.get_by_role("form", name="Query"), page.get_by_label("Look for")
    long = "red " * 2_499 + "red"
    field.fill("-")
    form.get_by_role("button", name="Look").click()
    form.get_by_text("a query must have words").wait_for()
    assert field.input_value() == "-"  # to be mended
    field.fill(long)
    form.get_by_role("button", name="Look").click()
    form.get_by_text("only its first 1,000 characters count").wait_for()
    field.fill("rotes Auto, red")
    form.get_by_role("button", name="Look").click()
    form.get_by_text("does not understand 'rotes', 'Auto'").wait_for()
    field.fill("red Auto, blue")
    form.get_by_role("button", name="Look").click()
    form.get_by_text("does not understand, and ignores, 'Auto'").wait_for()
    wait_for(lambda: any("participation" in record for record in moving.records().values()))
    field.fill(" ")
    field.press("Enter")
    wait_for(lambda: "participation" not in list(moving.records().values())[-1])
    queries = [record["query"] for record in moving.records().values() if "query" in record]
    assert queries == [[long], ["red Auto", "blue"], []]


def test_an_old_status_does_not_undo_what_was_asked(live: Live, page: Page) -> None:
    late: list[Callable[[], None]] = []

    def hold_the_first(route: Route) -> None:
        answer = route.fetch()
        if late:
            route.fulfill(response=answer)
        else:
            late.append(lambda: route.fulfill(response=answer))

    page.goto(live.url)
    shown(page)
    field = page.get_by_label("Look for")
    page.route("**/status", hold_the_first)
    waiting(page, lambda: late != [])
    field.fill("red")
    field.press("Enter")
    page.get_by_role("form", name="Query").get_by_text("Applied.").wait_for()
    field.blur()
    page.evaluate(WRITTEN, "query")
    late[0]()
    waiting(page, lambda: len(page.evaluate("written")) >= 2)
    assert set(page.evaluate("written")) == {"red"}


def test_nothing_is_written_where_somebody_is_about_to_type(live: Live, page: Page) -> None:
    page.goto(live.url)
    shown(page)
    field = page.get_by_label("Budget")
    wait_for(lambda: field.input_value() == "60")
    field.select_text()
    assert live.post("controls/0", {"budget": 20})[0] == 200
    for _ in range(3):
        page.wait_for_event("response", lambda answer: answer.url.endswith("/status"))
    page.keyboard.insert_text("30")  # in the place of what was selected
    assert field.input_value() == "30"
    page.reload()
    wait_for(lambda: field.input_value() == "20")


def test_a_gaze_point_is_told_to_whoever_comes_later(live: Live, page: Page) -> None:
    page.goto(live.url)
    shown(page)
    clear = page.get_by_role("button", name="Clear gaze")
    assert clear.is_disabled()
    assert live.post("controls/0", {"gaze": [160, 120]})[0] == 200
    waiting(page, clear.is_enabled)
    page.reload()
    waiting(page, clear.is_enabled)
    assert page.evaluate("gaze") == [160, 120]
    clear.click()
    wait_for(lambda: json.loads(live.get("status")[1])["sources"][0]["gaze"] is None)
    page.reload()
    shown(page)
    assert clear.is_disabled()


def test_a_picture_stands_under_the_name_of_its_own_source_only(live: Live, page: Page) -> None:
    def add_one(route: Route) -> None:
        answer = route.fetch()
        told = answer.json()
        only = told["sources"][0]
        told["sources"].append({**only, "number": 1, "name": "another", "state": "failed"})
        route.fulfill(json=told)

    page.route("**/status", add_one)
    page.route("**/frames/1", lambda route: route.fulfill(body=b""))
    page.goto(live.url)
    shown(page)
    page.get_by_role("button", name="another").click()
    page.get_by_text("another: failed").wait_for()
    assert page.locator("#picture[data-index]").count() == 0
    assert page.evaluate("pen.getImageData(0, 0, canvas.width, canvas.height).data.every((value) => value === 0)")
    page.unroute("**/status", add_one)  # as after a start with fewer sources
    shown(page)
    waiting(page, lambda: "streaming" in page.locator("#state").inner_text())
    assert page.get_by_role("button", name="another").count() == 0


def two(start: Any, mjpeg: Any, tmp_path: Path) -> Live:
    """Two sources."""
    door, yard = (f"http://127.0.0.1:{mjpeg.port}/stream?rate={rate}" for rate in (20, 5))
    return Live(start, door, tmp_path, "--budget", "60", also=[yard])


def test_all_sources_hang_side_by_side(start: Any, mjpeg: Any, page: Page, tmp_path: Path) -> None:
    live = two(start, mjpeg, tmp_path)
    page.goto(live.url)
    page.get_by_role("button", name="All sources").click()
    tiles = page.locator("#wall button")
    waiting(page, lambda: tiles.count() == 2)
    sizes = "() => [...document.querySelectorAll('#wall img')].map((image) => image.naturalWidth)"
    waiting(page, lambda: min(page.evaluate(sizes)) > 0)
    assert page.locator("#picture").is_hidden()
    names = page.locator("#sources button").all_inner_texts()
    assert names == ["stream?rate=20", "stream?rate=5", "All sources"]  # without the host that both have in common
    assert tiles.nth(1).inner_text().startswith("stream?rate=5: ")
    assert tiles.nth(1).get_attribute("title") == f"http://127.0.0.1:{mjpeg.port}/stream?rate=5"
    shortened = "(names) => namesOf(names.map((name) => ({name})))"
    assert page.evaluate(shortened, ["/dev/video0", "/dev/video1"]) == ["video0", "video1"]
    assert page.evaluate(shortened, ["/dev/video0", "rtsp://door/1"]) == ["/dev/video0", "door/1"]
    page.reload()
    waiting(page, lambda: tiles.count() == 2)  # the wall is still what is shown
    tiles.nth(1).click()
    page.locator("#state").get_by_text("streaming").wait_for()
    assert page.locator("#wall").is_hidden()
    index, _ = shown(page)
    assert index >= 0


def test_a_reload_keeps_the_source(start: Any, mjpeg: Any, page: Page, tmp_path: Path) -> None:
    live = two(start, mjpeg, tmp_path)
    page.goto(live.url)
    shown(page)
    tab = page.get_by_role("button", name=re.compile("rate=5"))
    tab.click()
    waiting(page, lambda: tab.get_attribute("aria-current") == "true")
    page.reload()
    shown(page)
    waiting(page, lambda: tab.get_attribute("aria-current") == "true")
    assert "rate=5" in page.locator("#state").inner_text()


def test_a_still_is_a_picture_of_the_latest_frame(moving: Live) -> None:
    live = moving
    wait_for(live.records)
    with urllib.request.urlopen(live.url + "stills/0", timeout=10) as answer:
        assert answer.headers["Content-Type"] == "image/jpeg"
        picture = cv2.imdecode(np.frombuffer(answer.read(), np.uint8), cv2.IMREAD_COLOR)
    with urllib.request.urlopen(live.url + "frames/0", timeout=10) as answer:
        sizes = struct.unpack(">III", answer.read(12))
        record = json.loads(answer.read(sizes[0]))
        frame, seen = (cv2.imdecode(np.frombuffer(answer.read(size), np.uint8), cv2.IMREAD_COLOR) for size in sizes[1:])
    assert picture.shape == frame.shape == seen.shape == (record["source_height"], record["source_width"], 3)
    # JPEG and the tokens' outlines lie between the still and the frame; PSNR is of the frame and of what is painted.
    assert cv2.PSNR(frame, seen) == pytest.approx(record["psnr"], abs=3.0)
    assert live.get("stills/7")[0] == 404


def test_what_the_model_sees_and_the_legend(moving: Live, page: Page) -> None:
    page.goto(moving.url)
    shown(page)
    pause(page, moving)
    assert re.fullmatch(r"What the model sees: PSNR \d+\.\d dB", page.locator("#reader-caption").inner_text())
    script = "() => [...document.getElementById('reader').getContext('2d').getImageData(0, 0, 320, 240).data]"
    assert len(set(page.evaluate(script))) > 50  # a picture
    record = moving.records()[shown(page)[0]]
    counts = page.locator("#legend li").all_inner_texts()
    assert counts == [f"{16 << lod} px: {record['lod'].count(lod)}" for lod in range(5)]
    chips = "() => [...document.querySelectorAll('#legend span')].map((chip) => getComputedStyle(chip).backgroundColor)"
    assert page.evaluate(chips) == [f"rgb({red}, {green}, {blue})" for red, green, blue in COLOURS]
    page.get_by_label("what the model sees", exact=True).uncheck()
    waiting(page, lambda: page.locator("#reader").is_hidden())


def test_a_reader_that_remembers_is_followed_from_the_start(start: Any, rtsp: Any, tmp_path: Path) -> None:
    """Nobody watched while most of the picture was sent."""
    live = Live(start, rtsp()[1], tmp_path, "--budget", "120", "--memory", "stream")
    wait_for(lambda: len(live.records()) > 30)
    with urllib.request.urlopen(live.url + "frames/0", timeout=10) as answer:
        sizes = struct.unpack(">III", answer.read(12))
        record = json.loads(answer.read(sizes[0]))
    assert len(record["x"]) < 300  # of the picture's cells: what was sent now does not cover it
    assert record["psnr"] > 20


def test_history_is_told_of_tokens_age_and_drops(live: Live, page: Page) -> None:
    page.goto(live.url)
    shown(page)
    rows = page.locator("#history p")
    waiting(page, lambda: rows.count() == 3 and page.evaluate("past.values().next().value.length") > 2)
    names = ["Tokens per second", "Age of the latest frame", "Dropped per second"]
    assert page.locator("#history b").all_inner_texts() == names
    assert int(rows.nth(0).locator("output").inner_text().replace(",", "")) > 0
    image = "document.querySelector('#history canvas').getContext('2d').getImageData(0, 0, 5000, 100)"
    assert page.evaluate(f"() => {image}.data.some(Boolean)")


def test_what_is_not_understood_is_not_told_as_a_success(moving: Live, page: Page) -> None:
    page.goto(moving.url)
    shown(page)
    page.get_by_label("Look for").fill("a red car")
    page.keyboard.press("Enter")
    page.locator("#query-notes").get_by_text("car").wait_for()
    page.locator("#asked").get_by_text("Looking for: a red car").wait_for()
    colour = "(id) => getComputedStyle(document.getElementById(id)).color"
    assert page.evaluate(colour, "query-notes") != page.evaluate(colour, "query-answer")
    page.reload()
    page.locator("#query-notes").get_by_text("car").wait_for()  # whoever comes later is told as well


def test_the_score_of_the_largest_picture_is_drawn(live: Live, page: Page) -> None:
    page.goto(live.url)
    shown(page)
    page.evaluate("drawHeat({ heat: Array(480 * 270).fill(9), heat_width: 480 }, 1 / 8)")  # 7680x4320


def test_events_tell_another_query(live: Live) -> None:
    with urllib.request.urlopen(live.url + "tokens", timeout=10) as answer:
        assert live.post("controls/0", {"query": ["grün white ☂", "red"]})[0] == 200
        events = (json.loads(line[6:]) for line in answer if line.startswith(b"data: "))
        event = next(event for event in events if "query" in event)
    assert event["query"] == ["grün white ☂", "red"]
    assert event["query_ignored"] == ["grün"]
    assert "participation" in event


def test_on_a_phone_nothing_lies_beside_the_screen(live: Live, page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(live.url)
    shown(page)
    page.locator("#figures dt").first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44  # what a finger hits
    assert "geheim77" not in page.content()
    assert "schluessel" not in page.content()


def test_a_change_counts_from_the_next_frame_on(moving: Live) -> None:
    """Of the kind of case Q4. The moving picture has use for far more than four tokens."""
    live = moving
    wait_for(lambda: len(live.records()) > 5)
    last = max(live.records())
    assert live.post("controls/0", {"budget": 4})[0] == 200
    wait_for(lambda: max(live.records()) > last + 20)
    counts = {index: len(record["x"]) for index, record in live.records().items()}
    change = min(index for index, count in counts.items() if count <= 4)
    assert last < change <= last + 15  # the request itself takes a moment
    assert all((count <= 4) == (index >= change) for index, count in counts.items())


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": "many"}, "budget must be a whole number"),
        ({"keyframe_interval": 0}, "keyframe_interval"),
        ({"gaze": [1]}, "gaze must be two numbers"),
        ({"paused": 1}, "paused must be true or false"),
        ({"colour": "red"}, "'colour' is none of"),
        ({"query": "red"}, "query must be a list of texts"),
        ({"query": "x" * 60_000}, "query must be a list of texts, got 'xxx"),
        ({"query": ["red", ""]}, "a query must have words"),
        ([], "send an object"),
        (b"{", ""),
    ],
)
def test_wishes_that_cannot_be(wishes: Any, said: str, live: Live) -> None:
    code, body = live.post("controls/0", wishes)
    assert code == 422
    assert said in body
    assert body.count("\n") == 1
    assert len(body) < 200


def test_what_programs_ask_for(live: Live) -> None:
    code, body = live.get("healthz")
    assert (code, json.loads(body)) == (200, {"status": "ok", "states": ["streaming"]})
    code, body = live.get("metrics")
    assert code == 200
    assert re.search(r'^foveate_received_total\{.*source="0".*\} \d+\.0$', body, re.MULTILINE)
    assert re.search(r'^foveate_state\{.*state="streaming"\} 1\.0$', body, re.MULTILINE)
    assert not re.search("geheim77|schluessel", body + live.get("status")[1] + live.log)
    assert live.post("controls/7", {"budget": 9})[0] == 404
    assert live.post("controls/0", {"budget": 9}, "text/plain")[0] == 415
    assert live.get("status", Host="evil.example")[0] == 400


MALFORMED = {
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n": b"400",  # TLS, as a port scanner speaks it
    b"GET / HTTP/1.1\r\n\r\n": b"400",
    b"GET / HTTP/1.1\r\nHost: [::1\r\n\r\n": b"400",
    b"POST /controls/0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n": b"400",
    b"POST /controls/0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n": b"400",
    b"GET /tokens HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n": b"400",
}


def test_what_is_no_request_is_answered_and_not_logged(live: Live) -> None:
    """A scanner that comes by for weeks fills no log."""
    place = urllib.parse.urlsplit(live.url)
    for request, code in MALFORMED.items():
        with socket.create_connection((str(place.hostname), place.port or 80), 10) as connection:
            connection.sendall(request)
            assert connection.recv(4096).split()[1] == code, request
    with socket.create_connection((str(place.hostname), place.port or 80), 10) as connection:
        connection.sendall(b"POST /controls/0 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        connection.sendall(b"Content-Length: 100\r\n\r\n{")  # and goes away
    assert live.get("healthz")[0] == 200
    live.process.send_signal(signal.SIGINT)
    assert live.process.wait(10) == 130
    said = live.log
    assert not re.search("(?i)invalid|unsupported|websocket|exception|traceback", said), said


def samples(live: Live) -> dict[str, float]:
    """The values of /metrics by name and labels."""
    lines = [line for line in live.get("metrics")[1].splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_counters_never_fall_and_the_age_stays_while_a_source_connects_again(live: Live, mjpeg: Any) -> None:
    """Prometheus takes a falling counter for one that began anew, and a missing series for one that ended."""
    wait_for(lambda: len(live.records()) > 5)
    scrapes = [samples(live)]
    mjpeg.kill()
    limit = time.monotonic() + 2.0
    while time.monotonic() < limit:
        scrapes.append(samples(live))
    mjpeg.start()
    wait_for(lambda: scrapes.append(samples(live)) or 'state="streaming"} 1.0' in live.get("metrics")[1])
    names = scrapes[0].keys()
    assert any(name.startswith("foveate_frame_age_seconds{") for name in names)
    assert all(scrape.keys() == names for scrape in scrapes)
    counts = [name for name in names if re.search(r"_(total|count|bucket|sum)\{", name)]
    for before, after in pairwise(scrapes):
        assert all(after[name] >= before[name] for name in counts)
    states = [name for name in names if name.startswith("foveate_state{")]
    assert all(sum(scrape[name] for name in states) == 1 for scrape in scrapes)
    assert any(scrape[name] for scrape in scrapes for name in states if "reconnecting" in name)


def test_a_pause_is_no_loss(live: Live) -> None:
    wait_for(lambda: len(live.records()) > 5)
    assert live.post("controls/0", {"paused": True})[0] == 200
    time.sleep(2.0)  # 40 pictures
    status = json.loads(live.get("status")[1])["sources"][0]
    assert status["paused"] is True
    assert status["state"] == "streaming"
    assert status["skipped"] >= 20
    assert status["dropped"] <= 2
    taken = len(live.records())
    assert live.post("controls/0", {"paused": False})[0] == 200
    wait_for(lambda: len(live.records()) > taken + 20)
    indices = sorted(live.records())
    status = json.loads(live.get("status")[1])["sources"][0]
    assert indices[-1] + 1 - len(indices) <= status["skipped"] + status["dropped"] + 3
    assert status["dropped"] <= 2


def test_latencies_are_a_histogram(live: Live) -> None:
    wait_for(lambda: len(live.records()) > 20)
    text = live.get("metrics")[1]
    assert "# TYPE foveate_latency_seconds histogram" in text
    assert "quantile" not in text
    buckets = [float(value) for value in re.findall(r"^foveate_latency_seconds_bucket\{.*\} (\S+)$", text, re.M)]
    bounds = [float(bound) for bound in re.findall(r'^foveate_latency_seconds_bucket\{.*le="([^"]+)".*$', text, re.M)]
    assert bounds == sorted(bounds)
    assert bounds[-1] == float("inf")
    assert buckets == sorted(buckets)
    (count,) = re.findall(r"^foveate_latency_seconds_count\{.*\} (\S+)$", text, re.M)
    assert buckets[-1] == float(count) >= 20
    (total,) = re.findall(r"^foveate_latency_seconds_sum\{.*\} (\S+)$", text, re.M)
    taken = [record["latency"] for record in live.records().values()]
    assert float(total) / float(count) == pytest.approx(sum(taken) / len(taken), rel=0.5)


def test_token_events_are_the_records_of_the_file(live: Live) -> None:
    events = []
    with urllib.request.urlopen(live.url + "tokens", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        for line in answer:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
            if len(events) == 10:
                break
    assert [event["index"] for event in events] == list(range(events[0]["index"], events[0]["index"] + 10))
    wait_for(lambda: events[-1]["index"] in live.records())
    assert all(live.records()[event["index"]] == event for event in events)


def test_a_watcher_that_does_not_read_slows_nothing(live: Live) -> None:
    with (
        urllib.request.urlopen(live.url + "frames/0", timeout=10),
        urllib.request.urlopen(live.url + "tokens", timeout=10),
    ):
        wait_for(live.records)
        before = max(live.records())
        time.sleep(2.0)
        status = json.loads(live.get("status")[1])["sources"][0]
        assert max(live.records()) >= before + 25  # 40 at 20 a second
        assert status["dropped"] <= 2


def test_a_page_left_open_fifty_times_leaves_nothing(live: Live) -> None:
    descriptors = Path(f"/proc/{live.process.pid}/fd")
    wait_for(live.records)
    before = len(list(descriptors.iterdir()))
    with ExitStack() as stack:
        for _ in range(25):
            for path in ("frames/0", "tokens"):
                stack.enter_context(urllib.request.urlopen(live.url + path, timeout=20))
        assert len(list(descriptors.iterdir())) >= before + 50
        assert live.get("healthz")[0] == 200
    wait_for(lambda: len(list(descriptors.iterdir())) <= before + 1)  # one is the listening thread's, now and then
    last = max(live.records())
    wait_for(lambda: max(live.records()) > last)


def test_health_tells_a_lost_server(live: Live, mjpeg: Any) -> None:
    mjpeg.kill()
    wait_for(lambda: live.get("healthz")[0] == 503)
    assert json.loads(live.get("healthz")[1])["states"] == ["reconnecting"]


def test_a_token_is_asked_for(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    live = Live(start, f"http://127.0.0.1:{mjpeg.port}/stream", tmp_path, "--web-token", str(file))
    assert live.get("status")[0] == live.get("")[0] == live.get("static/page.js")[0] == 401
    assert live.get("status", Authorization="Bearer wrong")[0] == 401
    assert live.get("status", Authorization=f"Bearer {TOKEN}")[0] == 200
    assert live.get("healthz")[0] == 200
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with opener.open(live.url + f"?token={TOKEN}", timeout=10) as answer:
        assert answer.url == live.url  # the token has left the address
        assert answer.status == 200
    assert TOKEN not in live.log


def test_two_on_one_machine_do_not_lock_each_other_out(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    """A browser sends its cookies to all ports of a host."""
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    served = []
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        file = folder / "token"
        file.write_text(f"{TOKEN}-{number}")
        live = Live(start, f"http://127.0.0.1:{mjpeg.port}/stream", folder, "--web-token", str(file))
        opener.open(live.url + f"?token={TOKEN}-{number}", timeout=10).close()
        served.append(live)
    for live in served:
        with opener.open(live.url + "status", timeout=10) as answer:
            assert answer.status == 200


def test_a_token_in_the_address_leads_to_no_other_host(start: Any, mjpeg: Any, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    live = Live(start, f"http://127.0.0.1:{mjpeg.port}/stream", tmp_path, "--web-token", str(file))
    connection = http.client.HTTPConnection("127.0.0.1", int(live.url.rstrip("/").rpartition(":")[2]), timeout=10)
    with closing(connection):
        connection.request("GET", f"//example.org/a?token={TOKEN}&b=1")
        answer = connection.getresponse()
        assert (answer.status, answer.getheader("location")) == (303, "/example.org/a?b=1")


def test_a_page_whose_token_is_no_longer_known_says_so(start: Any, mjpeg: Any, page: Page, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    live = Live(start, f"http://127.0.0.1:{mjpeg.port}/stream", tmp_path, "--web-token", str(file))
    page.goto(live.url + f"?token={TOKEN}")
    shown(page)
    page.context.clear_cookies()
    page.locator("#state").get_by_text("needs its access token").wait_for()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--web", "0.0.0.0:0"], "give --web-token FILE"),
        (["--web", "8080"], "--web must be HOST:PORT"),
        (["--web", "127.0.0.1:0", "--web-token", "/nowhere/token"], "cannot be read"),
    ],
)
def test_a_page_that_cannot_be(flags: list[str], said: str, foveate: Any) -> None:
    code, out, err = foveate("live", "http://127.0.0.1:9/", *flags)
    assert (code, out) == (2, "")
    assert said in err


def test_ctrl_c_ends_it_while_somebody_watches(live: Live) -> None:
    with urllib.request.urlopen(live.url + "tokens", timeout=10):
        begin = time.monotonic()
        live.process.send_signal(2)
        live.process.wait(10)
    assert time.monotonic() - begin < 6.0  # 2 s where the machine is not busy
    assert live.process.returncode == 130
