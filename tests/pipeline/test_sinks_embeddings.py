"""Embeddings in shards, with an encoder that stands in for a model and needs NumPy alone."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from foveate.pipeline.selection import Selection
from foveate.pipeline.sinks import open_sink, read_shards
from foveate.pipeline.sinks.encoding import EncodingSink, Once
from foveate.pipeline.sinks.shard_files import save_npz
from foveate.pipeline.sinks.shards import ShardSink
from foveate.pipeline.stream import open_stream
from tests.pipeline.test_sinks_records import selection, write

CLIP = str(Path(__file__).parents[2] / "sample_videos" / "tree.mp4")


class MeanColour:
    """Of each group its mean colour and its first token's centre."""

    name = "means"

    def __init__(self, merge: int) -> None:
        self.merge = merge
        self.calls = 0

    def encode(self, selection: Selection) -> NDArray[np.float32]:
        self.calls += 1
        assert selection.patches is not None
        tokens = self.merge**2
        colours = selection.patches.reshape(-1, tokens * 256, 3).astype(np.float32).mean(axis=1)
        return np.column_stack([colours, selection.x[::tokens], selection.y[::tokens]]).astype(np.float32)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("merge", [1, 2, 3])
@pytest.mark.parametrize("memory", ["frame", "stream"])
def test_each_group_of_a_clip_has_its_own(suffix: str, merge: int, memory: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}"
    sink = EncodingSink(open_sink(str(path)), MeanColour(merge))
    allocation = {"merge": merge, "memory": memory}
    with open_stream(CLIP, sinks=[sink], source={"frames": 4}, budget=40, allocation=allocation) as stream:
        list(stream)
    ((header, arrays),) = read_shards(path)
    assert (header["config"]["encode"], header["config"]["allocation"]["merge"]) == ("means", merge)
    found, tokens = arrays["embeddings"], merge**2
    assert found.dtype == np.float32
    assert found.shape == (arrays["offsets"][-1] // tokens, 5)
    assert len(arrays["offsets"]) == 5
    assert not (arrays["offsets"] % tokens).any()
    for start, end in zip(arrays["offsets"][:-1], arrays["offsets"][1:], strict=True):
        for group in range(start // tokens, end // tokens):
            own = slice(group * tokens, (group + 1) * tokens)
            colour = arrays["patches"][own].astype(np.float64).mean(axis=(0, 1, 2))
            np.testing.assert_allclose(found[group, :3], colour, rtol=1e-6)  # a few roundings of float32
            assert found[group, 3:].tolist() == [arrays["x"][own][0], arrays["y"][own][0]]


def test_frames_without_tokens_have_none(tmp_path: Path) -> None:
    sink = EncodingSink(open_sink(str(tmp_path / "a.npz")), MeanColour(1))
    empty = selection(0, patches=np.empty((0, 16, 16, 3), np.uint8))
    with np.errstate(invalid="ignore"):
        write(sink, empty, selection(2), empty)
    ((_, arrays),) = read_shards(tmp_path / "a.npz")
    assert arrays["offsets"].tolist() == [0, 0, 2, 2]
    assert arrays["embeddings"].tolist() == [[7, 7, 7, 8, 24], [8, 8, 8, 24, 24]]


def test_two_outputs_cost_one_encoding(tmp_path: Path) -> None:
    encoder = MeanColour(1)
    once = Once(encoder)
    sinks = [EncodingSink(open_sink(str(tmp_path / name)), once) for name in ("a.npz", "a.safetensors")]
    with open_stream(CLIP, sinks=sinks, source={"frames": 3}, budget=12) as stream:
        list(stream)
    assert encoder.calls == 3
    first, second = (next(read_shards(tmp_path / name))[1] for name in ("a.npz", "a.safetensors"))
    assert first["embeddings"].tobytes() == second["embeddings"].tobytes()


def test_embeddings_count_towards_the_size_of_a_shard(tmp_path: Path) -> None:
    wide = np.zeros((2, 4000), np.float32)  # 32,000 bytes
    sink = ShardSink(str(tmp_path / "a.npz"), save_npz, shard_bytes=100_000)
    write(sink, *(selection(embeddings=wide) for _ in range(6)))
    assert [len(arrays["embeddings"]) for _, arrays in read_shards(tmp_path / "a.npz")] == [6, 6]


def test_without_an_encoder_there_are_none(tmp_path: Path) -> None:
    write(open_sink(str(tmp_path / "a.npz")), selection())
    ((header, arrays),) = read_shards(tmp_path / "a.npz")
    assert "embeddings" not in arrays
    assert "encode" not in header["config"]
