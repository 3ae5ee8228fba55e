"""Files on servers, by HTTP, HTTPS and FTP, against real servers on loopback."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from foveate.pipeline.errors import SettingsError, SourceError
from foveate.pipeline.frames import Damage
from foveate.pipeline.settings import LiveSettings, Settings, SourceSettings
from foveate.pipeline.sources import open_source
from foveate.pipeline.stream import open_stream

COUNT = 60  # pictures of each film, 25 a second
FORMS = {
    "last.mp4": [],
    "first.mp4": ["-movflags", "+faststart"],
    "parts.mp4": ["-movflags", "+frag_keyframe+empty_moov"],
    "film.mkv": [],
    "film.ts": [],
    "film.avi": [],
    "film.h264": [],
}
QUICK = LiveSettings(connect_timeout=1.0)

Address = Callable[[str], str]


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one film in several forms, of about 600 kB each, and a picture."""
    folder = tmp_path_factory.mktemp("films")
    made = ["-f", "lavfi", "-i", f"testsrc2=size=320x240:rate=25:duration={COUNT / 25}", "-pix_fmt", "yuv420p"]
    encode = ["-c:v", "libx264", "-preset", "ultrafast", "-qp", "12", "-g", "20"]
    first = folder / "last.mp4"
    subprocess.run(["ffmpeg", "-v", "error", *made, *encode, str(first)], check=True)
    for name, flags in FORMS.items():
        if folder / name != first:
            command = ["ffmpeg", "-v", "error", "-i", str(first), "-c", "copy", *flags, str(folder / name)]
            subprocess.run(command, check=True)
    subprocess.run(["ffmpeg", "-v", "error", "-i", str(first), "-frames:v", "1", str(folder / "one.png")], check=True)
    (folder / "page.html").write_text("<html><body>Not a film</body></html>")
    (folder / "list.m3u8").write_text("#EXTM3U\n#EXTINF:1,\nfilm.ts\n#EXT-X-ENDLIST\n")
    (folder / "empty.mp4").touch()
    whole = (folder / "first.mp4").read_bytes()
    (folder / "short.mp4").write_bytes(whole[: len(whole) // 2])
    return folder


@pytest.fixture
def web(server: Any, films: Path) -> str:
    """The beginning of the addresses of a web server, see servers/files.py."""
    return f"http://127.0.0.1:{server('files.py', str(films)).port}"


@pytest.fixture
def ftp(server: Any, films: Path) -> Callable[[str], str]:
    """Makes the address of a file on an FTP server, from who asks for what."""
    port = server("ftp.py", str(films)).port
    return lambda who: f"ftp://{who.replace('HOST', f'127.0.0.1:{port}')}"


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foveate.pipeline.sources.remote.file.RETRY_DELAYS", (0.01, 0.01))


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    before = len(list(Path("/proc/self/fd").iterdir()))
    yield
    limit = time.monotonic() + 5
    while len(list(Path("/proc/self/fd").iterdir())) > before + 3:  # pipes of servers that the test started
        assert time.monotonic() < limit, "a descriptor is left"
        time.sleep(0.05)


def read(address: str, network: LiveSettings = QUICK) -> tuple[list[float], Damage]:
    """The times of all frames, and what was lost."""
    source = open_source(address, SourceSettings(), network)
    try:
        return [frame.time for frame in source], source.damage
    finally:
        source.close()


def refused(address: str, **network: Any) -> str:
    """What is said of an address that cannot be opened, in one line."""
    begin = time.monotonic()
    with pytest.raises(SourceError) as caught:
        read(address, LiveSettings(**{"connect_timeout": 1.0, **network}))
    assert time.monotonic() - begin < 15.0
    assert "\n" not in str(caught.value)
    assert "geheim77" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("how", ["ranges", "whole"])
def test_every_picture_of_a_film_at_its_time(how: str, name: str, web: str) -> None:
    """``whole``: a server that sends no parts, so that an index behind the pictures takes another request."""
    times, damage = read(f"{web}/{how}/{name}")
    assert times == pytest.approx([index / 25 for index in range(COUNT)], abs=1e-3)
    assert damage == Damage()


@pytest.mark.parametrize("name", ["first.mp4", "parts.mp4", "film.mkv", "film.ts", "film.h264"])
def test_a_server_that_does_not_tell_the_length(name: str, web: str) -> None:
    times, damage = read(f"{web}/endless/{name}")
    assert len(times) == COUNT
    assert damage == Damage()


def test_an_index_that_comes_last_on_such_a_server(web: str) -> None:
    assert "its index comes last, and the server does not tell where" in refused(f"{web}/endless/last.mp4")


def test_a_picture(web: str) -> None:
    assert read(f"{web}/ranges/one.png")[0] == [0.0]


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("name", ["first.mp4", "last.mp4", "film.mkv", "film.ts", "film.avi"])
def test_a_connection_that_is_cut_again_and_again_is_taken_up(name: str, web: str) -> None:
    times, damage = read(f"{web}/flaky/{name}?at=100000")
    assert len(times) == COUNT
    assert damage == Damage()


@pytest.mark.usefixtures("no_pauses")
@pytest.mark.parametrize("name", ["first.mp4", "film.mkv"])
def test_a_connection_that_is_cut_for_good_is_damage(name: str, web: str, films: Path) -> None:
    half = (films / name).stat().st_size // 2
    times, damage = read(f"{web}/cut/{name}?at={half}")
    assert COUNT / 4 < len(times) < COUNT * 3 / 4
    assert f"the connection was cut at byte {half} of " in damage.messages[0]
    assert "the server answered 503" in damage.messages[0]
    if name == "first.mp4":  # whose index counts them
        assert len(times) + damage.frames == COUNT


@pytest.mark.usefixtures("no_pauses")
def test_one_that_is_cut_before_a_picture_can_be_decoded_is_an_error(web: str) -> None:
    assert "the connection was cut at byte 1000 of" in refused(f"{web}/cut/first.mp4?at=1000")


@pytest.mark.usefixtures("no_pauses")
def test_a_server_that_falls_silent(web: str, films: Path) -> None:
    half = (films / "first.mp4").stat().st_size // 2
    begin = time.monotonic()
    times, damage = read(f"{web}/silent/first.mp4?at={half}")
    assert len(times) > COUNT / 4
    assert "no answer within 1 s" in damage.messages[0]
    assert time.monotonic() - begin < 15.0


def test_a_slow_server_is_waited_for(web: str) -> None:
    """No single wait is long, all together take longer than the time limit."""
    begin = time.monotonic()
    assert len(read(f"{web}/slow/first.mp4?at=400000", LiveSettings(connect_timeout=0.8))[0]) == COUNT
    assert time.monotonic() - begin > 0.8


def test_a_file_that_is_cut_short_on_the_server(web: str) -> None:
    times, damage = read(f"{web}/ranges/short.mp4")
    assert 0 < len(times) < COUNT
    assert "the file is cut short" in damage.messages[-1]


def test_redirects(web: str) -> None:
    assert len(read(f"{web}/redirect/first.mp4")[0]) == COUNT
    assert "redirects in a circle" in refused(f"{web}/loop/first.mp4")


def test_passwords(web: str) -> None:
    host = web.removeprefix("http://")
    assert len(read(f"http://user:geheim77@{host}/secret/film.mkv")[0]) == COUNT
    assert "refused the user or password" in refused(f"http://user:geheim77x@{host}/secret/film.mkv")
    assert "refused the user or password" in refused(f"{web}/secret/film.mkv")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("missing/first.mp4", "there is no such file on the server"),
        ("broken/first.mp4", "the server answered 503"),
        ("ranges/page.html", "not a video"),
        ("ranges/empty.mp4", "the file is empty"),
        ("ranges/list.m3u8", "an HLS playlist; give it to foveate live"),
    ],
)
def test_what_is_no_film(path: str, said: str, web: str) -> None:
    assert said in refused(f"{web}/{path}")


def test_servers_that_are_not_there(silent: int) -> None:
    assert "connection refused" in refused("http://user:geheim77@127.0.0.1:9/a.mp4")
    assert "no answer within 1 s" in refused(f"http://user:geheim77@127.0.0.1:{silent}/a.mp4")
    assert "its host name is not known" in refused(f"http://user:geheim77@{64 * 'a'}/a.mp4")
    assert "not an address" in refused("http://[::1/a.mp4")


def test_https(web: str, tls: Any) -> None:
    port, certificate = tls(int(web.rpartition(":")[2]))
    address = f"https://localhost:{port}/ranges/last.mp4"
    assert len(read(address, LiveSettings(ca_file=str(certificate)))[0]) == COUNT
    assert len(read(address, LiveSettings(verify=False))[0]) == COUNT
    assert "certificate is not trusted: self-signed" in refused(address)
    assert "ip address mismatch" in refused(address.replace("localhost", "127.0.0.1"), ca_file=str(certificate))
    with pytest.raises(SettingsError, match=r"live\.ca_file '/nowhere' cannot be used"):
        read(address, LiveSettings(ca_file="/nowhere"))
    lower = f"https://localhost:{port}/redirect/last.mp4"  # the server behind knows of no TLS, and its path stays https
    assert len(read(lower, LiveSettings(ca_file=str(certificate)))[0]) == COUNT


@pytest.mark.parametrize("name", ["last.mp4", "film.mkv", "film.ts"])
def test_by_ftp(name: str, ftp: Address) -> None:
    times, damage = read(ftp(f"user:geheim77@HOST/{name}"))
    assert len(times) == COUNT
    assert damage == Damage()
    assert len(read(ftp(f"HOST/{name}"))[0]) == COUNT


def test_ftp_that_refuses(ftp: Address, silent: int) -> None:
    assert "refused the user or password" in refused(ftp("user:geheim77x@HOST/last.mp4"))
    assert "there is no such file on the server" in refused(ftp("user:geheim77@HOST/none.mp4"))
    assert "file names have no control characters" in refused(ftp("user:geheim77@HOST/a%0d%0aDELE%20b"))
    assert "no answer within 1 s" in refused(f"ftp://user:geheim77@127.0.0.1:{silent}/a.mp4")


def test_nothing_in_a_file_leads_to_another_one(web: str, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a pattern, which files of this machine match: three pictures, where there is one on the server."""
    shutil.copy(films / "one.png", films / "x_%04d.png")
    monkeypatch.chdir(films)
    for number in range(3):
        shutil.copy(films / "one.png", films / f"x_000{number}.png")
    assert read(f"{web}/ranges/x_%2504d.png")[0] == [0.0]


def test_open_stream_reads_a_file_on_a_server_as_a_file(web: str) -> None:
    """Slower than it comes, without loss."""
    with open_stream(f"{web}/ranges/first.mp4", Settings(budget=40)) as stream:
        assert stream.status is None
        assert stream.info.frames == COUNT
        indices = []
        for selection in stream:
            assert "latency" not in selection.extras
            indices.append(selection.index)
            time.sleep(0.01)
    assert indices == list(range(COUNT))


def test_open_stream_may_say_which_it_expects(web: str, mjpeg: Any) -> None:
    with pytest.raises(SourceError, match="a file, not a live source; give it to foveate run"):
        open_stream(f"{web}/ranges/first.mp4", expect="live")
    address = f"http://127.0.0.1:{mjpeg.port}/stream"
    with pytest.raises(SourceError, match="a stream without an end; give it to foveate live"):
        open_stream(address, expect="file")
    with open_stream(address, expect="live") as stream:
        assert len(list(islice(stream, 3))) == 3
