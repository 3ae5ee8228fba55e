"""Which videos sources stand for, what they are called, and in which order they come."""

import os
from pathlib import Path

import pytest

from foveate.pipeline.corpus.inputs import expand
from foveate.pipeline.errors import SourceError


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def touch(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()


def pairs(*sources: str) -> list[tuple[str, str]]:
    return [(each.address, each.name) for each in expand(sources)]


def test_one_file_is_called_by_its_name() -> None:
    touch("videos/a.mp4")
    assert pairs("videos/a.mp4") == [("videos/a.mp4", "a.mp4")]


def test_a_file_that_is_not_there_is_an_input_all_the_same() -> None:
    assert pairs("gone.mp4") == [("gone.mp4", "gone.mp4")]


def test_equal_names_in_two_folders_stay_apart() -> None:
    touch("one/clip.mp4", "two/clip.mp4")
    assert pairs("one/clip.mp4", "two/clip.mp4") == [
        ("one/clip.mp4", "one/clip.mp4"),
        ("two/clip.mp4", "two/clip.mp4"),
    ]


def test_natural_order() -> None:
    touch(*(f"v/clip{n}.mp4" for n in (10, 9, 1, 100)), "v/clip02.mp4", "v/10/a.mp4", "v/9/a.mp4")
    assert [name for _, name in pairs("v")] == [
        "9/a.mp4",
        "10/a.mp4",
        "clip1.mp4",
        "clip02.mp4",
        "clip9.mp4",
        "clip10.mp4",
        "clip100.mp4",
    ]


def test_files_given_in_any_order_come_in_natural_order() -> None:
    assert [address for address, _ in pairs("b10.mp4", "b9.mp4", "a.mp4")] == ["a.mp4", "b9.mp4", "b10.mp4"]


def test_a_folder_gives_its_videos_only() -> None:
    touch("v/a.MP4", "v/b.mkv", "v/README.md", "v/.hidden.mp4", "v/.git/c.mp4", "v/deep/er/d.webm")
    os.mkfifo("v/pipe.mp4")
    Path("v/broken.mp4").symlink_to("nowhere")
    assert [name for _, name in pairs("v")] == ["a.MP4", "b.mkv", "broken.mp4", "deep/er/d.webm"]


def test_names_begin_in_the_folder_that_was_given_however_deep_its_files_lie() -> None:
    touch("v/only/here/a.mp4")
    assert pairs("v/") == [("v/only/here/a.mp4", "only/here/a.mp4")]


def test_a_pattern() -> None:
    touch("v/a.mp4", "v/b.mp4", "v/c.mkv", "v/deep/d.mp4")
    assert [name for _, name in pairs("v/*.mp4")] == ["a.mp4", "b.mp4"]
    assert [name for _, name in pairs("v/**/*.mp4")] == ["a.mp4", "b.mp4", "deep/d.mp4"]
    assert [name for _, name in pairs("v/*")] == ["a.mp4", "b.mp4", "c.mkv", "deep/d.mp4"]


def test_what_exists_is_no_pattern_and_no_list() -> None:
    touch("clip[1].mp4", "clip1.mp4", "@clip.mp4")
    assert pairs("clip[1].mp4") == [("clip[1].mp4", "clip[1].mp4")]
    assert pairs("@clip.mp4") == [("@clip.mp4", "@clip.mp4")]


def test_numbered_pictures_are_one_input() -> None:
    touch("f[1]/frame_0001.png", "f[1]/frame_0002.png")
    assert pairs("f[1]/frame_%04d.png") == [("f[1]/frame_%04d.png", "frame_%04d.png")]


def test_a_list() -> None:
    touch("v/a.mp4", "w/b.mp4", "w/c.mp4")
    Path("list.txt").write_text("# what is wanted\nv/a.mp4\n\n  w  \nw/*.mp4\n")
    assert [name for _, name in pairs("@list.txt")] == ["v/a.mp4", "w/b.mp4", "w/c.mp4"]


def test_what_is_given_twice_comes_once() -> None:
    touch("v/a.mp4")
    assert [name for _, name in pairs("v/a.mp4", "v", "./v/../v/a.mp4")] == ["a.mp4"]


def test_addresses_are_called_by_their_path_without_passwords() -> None:
    first, second = "https://me:secret@host:8/films/a.mp4?token=x", "https://host:8/films/b/c.mp4"
    assert pairs(first) == [(first, "a.mp4")]
    assert [name for _, name in pairs(first, second)] == ["a.mp4", "b/c.mp4"]


def test_files_and_addresses_together() -> None:
    touch("v/a.mp4")
    assert [name for _, name in pairs("v/a.mp4", "https://host/x/../../b.mp4")] == ["a.mp4", "host/b.mp4"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("empty", "a folder without a video"),
        ("none*.mp4", "no file matches this pattern"),
        ("@gone.txt", "the list gone.txt cannot be read"),
        ("@nothing.txt", "names no source"),
        ("@bytes.txt", "it is not text"),
        ("", "address is empty"),
        ("file://elsewhere/a.mp4", "names the host"),
    ],
)
def test_what_stands_for_nothing(source: str, said: str) -> None:
    Path("empty").mkdir()
    Path("nothing.txt").write_text("\n# no\n")
    Path("bytes.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(SourceError, match=said) as caught:
        expand([source, "other.mp4"])
    assert "\n" not in str(caught.value)


def test_two_addresses_of_one_name() -> None:
    with pytest.raises(SourceError, match="would bear one name") as caught:
        expand(["http://h/a.mp4?key=secret", "http://h/a.mp4?key=other"])
    assert "secret" not in str(caught.value)


def test_any_depth_is_the_same_for_a_pattern_as_for_a_folder() -> None:
    """With two links that lead up, following them would find every file millions of times."""
    touch("v/a.mp4", "v/one/b.mp4", "v/one/two/c.mp4", "v/.hidden/d.mp4", "v/[1]/e.mp4", "v/note.txt", "other/f.mp4")
    for number in range(2):
        Path(f"v/one/up{number}").symlink_to("..")
    Path("v/elsewhere").symlink_to("../other")
    expected = ["[1]/e.mp4", "a.mp4", "one/b.mp4", "one/two/c.mp4"]
    assert [name for _, name in pairs("v")] == expected
    assert [name for _, name in pairs("v/**/*.mp4")] == expected
    assert [name for _, name in pairs(f"{Path.cwd()}/v/**/*.mp4")] == expected
    assert [name for _, name in pairs("v/**")] == ["[1]/e.mp4", "a.mp4", "note.txt", "one/b.mp4", "one/two/c.mp4"]
    assert pairs("v/**/two/*.mp4") == [("v/one/two/c.mp4", "one/two/c.mp4")]
    assert pairs("v/elsewhere/**/*.mp4") == [("v/elsewhere/f.mp4", "f.mp4")]
    assert [address for address, _ in pairs("**/b.mp4")] == ["v/one/b.mp4"]
    assert [address for address, _ in pairs("**/one/**/c.mp4")] == ["v/one/two/c.mp4"]
