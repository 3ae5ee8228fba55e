"""``foveate run --show-channels`` and ``foveate fit-scorer``, from the command line to the file."""

from pathlib import Path

import av
import cv2
import numpy as np
import pytest

from foveate.app.main import main


def test_channels_are_shown_on_one_frame(samples: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    clip, picture = str(samples / "pedestrians.mp4"), tmp_path / "channels.png"
    assert main(["run", clip, "--show-channels", str(picture), "--show-frame", "3"]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "4 frames" in err
    sheet = cv2.imread(str(picture))
    high, wide = 198 + 40 + 8, 264 + 8  # a map of 768x576 at 264 pixels, its label, a gap: six rows of seven
    assert sheet.shape == (6 * high + 8, 7 * wide + 8, 3)
    with av.open(clip) as container:
        for _, frame in zip(range(4), container.decode(video=0), strict=False):
            shown = frame
    small = cv2.resize(shown.to_ndarray(format="bgr24"), (264, 198), interpolation=cv2.INTER_AREA)
    assert np.abs(sheet[48 : 48 + 198, 8 : 8 + 264].astype(int) - small).mean() < 3  # chroma is upsampled otherwise
    red = sheet[48 : 48 + 198, 8 + wide : 8 + wide + 264]
    assert not red[..., :2].any()
    cell = red[19, 52, 2]  # row 3, column 9 of the cells, which are 5.5 pixels wide here
    assert abs(int(cell) - shown.to_ndarray(format="rgb24")[3 * 16 : 4 * 16, 9 * 16 : 10 * 16, 0].mean()) < 4


def test_of_a_sampled_video_the_frames_looked_at_are_counted(samples: Path, tmp_path: Path) -> None:
    picture = tmp_path / "c.png"
    asked = ["--show-channels", str(picture), "--show-frame", "2", "--every", "5"]
    assert main(["run", str(samples / "tree.mp4"), *asked]) == 0
    assert picture.exists()


def test_a_layout_of_ones_own_and_other_outputs_beside(samples: Path, tmp_path: Path) -> None:
    clip, layout, out = str(samples / "tree.mp4"), tmp_path / "mine.toml", tmp_path / "t.jsonl"
    layout.write_text('channels = ["gaze", "red"]')
    picture = tmp_path / "c.jpg"
    asked = ["--show-channels", str(picture), "--layout", str(layout), "-o", str(out), "--frames", "5"]
    assert main(["run", clip, *asked]) == 0
    assert len(out.read_text().splitlines()) == 6
    assert cv2.imread(str(picture)).shape[1] == 4 * 272 + 8  # the picture, two channels, the score


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (["--show-channels", "c.gif"], 2, "must end in one of .png, .jpg"),
        (["--show-channels", "c.png", "--layout", "spec41"], 2, "'spec41' is neither a layout nor a TOML file"),
        (["--show-channels", "c.png", "--show-frame", "-1"], 2, "--show-frame must be at least 0, got -1"),
        (["--show-channels", "c.png", "--show-frame", "5", "--frames", "5"], 2, "--show-frame 5 is not among the 5"),
        (["--show-frame", "3"], 2, "need --show-channels"),
        (["--layout", "spec13"], 2, "need --show-channels"),
        (["--show-channels", "c.png", "--show-frame", "9999"], 1, "frames; --show-frame counts them from 0"),
        (["--show-channels", "no/c.png"], 1, "cannot write no/c.png"),
        (["--show-channels", "c.png", "--overlay", "c.png"], 2, "unknown suffix"),
    ],
)
def test_what_cannot_be_shown_is_one_line(
    flags: list[str],
    code: int,
    said: str,
    samples: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(samples / "tree.mp4"), *flags, "-q"]) == code
    err = capfd.readouterr().err
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "c.png").exists()
