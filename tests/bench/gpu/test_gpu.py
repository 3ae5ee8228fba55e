"""The parts of the GPU benchmarks that need no GPU."""

from pathlib import Path

import numpy as np
import pytest

from foveate.bench.gpu import fetches, strategies
from foveate.bench.gpu.frame import least_bytes
from foveate.bench.gpu.scene import HEIGHT, WIDTH, pictures
from foveate.bench.reader.texture import block_means
from foveate.cuda.driver.program import compile_cubin
from foveate.cuda.kernel_support import missing_kernels
from foveate.pipeline.plan import plan_stream
from foveate.pipeline.settings import Settings


def test_the_scenes_pictures_differ_in_a_tenth_of_the_tiles(samples: Path) -> None:
    first, second = pictures(samples / "bunny.mp4")
    assert first.shape == (HEIGHT * 3 // 2, WIDTH)
    blocks = block_means(np.abs(first[:HEIGHT].astype(np.int16) - second[:HEIGHT]), 8) > 3.0
    rows, columns = -(-HEIGHT // 32), WIDTH // 32
    padded = np.zeros((rows * 4, columns * 4), np.bool_)
    padded[: blocks.shape[0], : blocks.shape[1]] = blocks
    share = padded.reshape(rows, 4, columns, 4).any(axis=(1, 3)).mean()
    assert share == pytest.approx(0.1, abs=0.01)
    assert (first[HEIGHT:] == second[HEIGHT:]).all()


def test_least_bytes_grow_with_what_is_written() -> None:
    assert least_bytes("Write", 1.0, 2) == pytest.approx(10 * least_bytes("Write", 0.1, 2))
    assert least_bytes("Change", 0.1, 2) == 2 * 1.5 * WIDTH * HEIGHT  # both pictures, 4:2:0
    assert least_bytes("Layers", 0.1, 0) > least_bytes("Layers", 0.1, 2)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_fetches_compile(architecture: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert compile_cubin(Path(fetches.__file__).with_suffix(".cu"), architecture)[:4] == b"\x7fELF"


def test_every_layout_has_its_kernels() -> None:
    source = Path(fetches.__file__).with_suffix(".cu").read_text()
    for layout in fetches.LAYOUTS:
        assert f" fetch_{layout.name}(Fetch" in source
        assert f" fill_{layout.name}(Fill" in source
        assert layout.fetches <= layout.stored


def test_points_of_all_orders_are_the_same_pixels() -> None:
    orders = fetches.orders()
    pixels = {name: np.rint(points * (WIDTH, HEIGHT) - 0.5).astype(int) for name, points in orders.items()}
    assert pixels["rows"][1].tolist() == [1, 0]
    assert pixels["blocks"][8].tolist() == [0, 1]  # the second row of the first block
    for name in ("blocks", "random"):
        numbers = pixels[name] @ (1, WIDTH)
        assert not (np.diff(numbers) == 1).all()
        assert (np.sort(numbers) == np.arange(WIDTH * HEIGHT)).all()
    cells = pixels["tokens"].reshape(273, 256, 2)
    assert (cells // 16 == cells[:, :1] // 16).all()


def test_the_sums_of_channels() -> None:
    # Channel 0 of pixel (0, 0) holds 0; channels 1 and 2 of it 37/64, and 74 - 64 = 10 in 64ths.
    assert fetches.expected(fetches.orders()["rows"][:1], 3).tolist() == [47 / 64]


def test_strategies_are_measured_by_where_their_tokens_are_chosen(tmp_path: Path) -> None:
    wanted = strategies.cases(tmp_path)
    missing = {name: missing_kernels(plan_stream(Settings.model_validate(each))) for name, each in wanted.items()}
    assert {name for name, why in missing.items() if why} == {"cluster_first, frame", "two regions"}
