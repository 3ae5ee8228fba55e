"""Queries from the address of a video to Selections: rows Q1, Q2 and Q4, several queries, and none."""

import json
import logging
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

from foveate.pipeline import open_stream
from foveate.pipeline.attributes.embedder import AttributesEmbedder
from foveate.pipeline.errors import SettingsError
from foveate.pipeline.sinks.header import header_json

CLIP = str(Path(__file__).parents[2] / "sample_videos" / "pedestrians.mp4")


LONG = " ".join(f"word{n}" for n in range(2_000))


def opened(*queries, frames=4, **settings):
    return open_stream(CLIP, engine="cpu", query=queries, source={"frames": frames}, **settings)


def chosen(selection):
    return [values.tobytes() for values in (selection.x, selection.y, selection.lod, selection.participation)]


def test_a_query_of_ten_thousand_characters_is_cut_and_said_once(caplog):
    with caplog.at_level(logging.WARNING, "foveate"), opened("red " * 2_500) as stream, opened("red") as short:
        cut = [message for message in caplog.messages if "first 1,000 characters" in message]
        assert len(cut) == 1
        assert len(cut[0]) < 200
        assert cut[0] in stream.header.notes
        for one, other in zip(stream, short, strict=True):
            assert chosen(one) == chosen(other)


def test_a_long_query_that_is_not_understood_is_told_in_short_lines(caplog):
    with caplog.at_level(logging.WARNING, "foveate"), opened(LONG, query_lenient=True):
        assert max(map(len, caplog.messages)) < 400
    with pytest.raises(SettingsError, match="'word7' and") as caught:
        opened(LONG)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("query", ["größer\n'als' rot", "红色 red 🔴", "\u202ered\t"])
def test_any_text_comes_back_from_the_header(query):
    with opened(query, "red", query_lenient=True) as stream:
        assert json.loads(header_json(stream.header))["config"]["query"] == [query, "red"]


def test_another_query_makes_the_next_frame_that_of_a_fresh_run():
    with opened("moving", frames=12) as stream:
        before = [chosen(selection) for selection in stream]
    with opened("red", frames=12) as stream:
        after = [chosen(selection) for selection in stream]
    found = []
    with opened("moving", frames=12) as stream:
        for selection in stream:
            found.append(chosen(selection))
            if len(found) == 4:
                assert stream.set_query(["red"]) == ()
    switch = next(index for index, tokens in enumerate(found) if tokens != before[index])
    assert switch >= 4
    assert found[switch:] == after[switch:]


def test_what_set_query_does_not_understand_is_returned_and_what_it_refuses_raises():
    with opened("red") as stream:
        assert "'car'" in stream.set_query(["red car"])[0]
        with pytest.raises(ValueError, match="words"):
            stream.set_query([""])
        with pytest.raises(ValueError, match="list of texts, got 'red'"):
            stream.set_query("red")  # which is a sequence of texts as well, 'r', 'e' and 'd'
    with open_stream(CLIP, engine="cpu") as stream, pytest.raises(ValueError, match="keep_embeddings"):
        stream.set_query(["red"])


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        (
            ["movng"],
            "'movng': the attributes encoder does not understand 'movng'; did you mean",
        ),
        (["red", "unicorn"], "query 'unicorn': the attributes encoder does not understand 'unicorn'"),
        (["-Yelow"], "did you mean 'yellow'? foveate doctor lists the words that it understands, --encoder open_clip"),
        (["red,blue"], "query 'red,blue': nothing is both 'red' and 'blue'; write each as a query of its own"),
        (["red green"], "query 'red green': nothing is both 'red' and 'green'; write each as a query of its own"),
        (["a small large thing"], "nothing is both 'small' and 'large'; write each as a query of its own"),
        (["the"], "query 'the': it names no attribute; --query-lenient ignores the query"),
        (["not red"], "write what is not wanted as a query of its own: '-red'; --query-lenient"),
    ],
)
def test_a_query_of_which_nothing_is_understood_is_an_error_unless_lenient(queries, said):
    for given in ({"query": queries}, {"query": ["red"], "maps": tuple(f"query:{query}" for query in queries)}):
        with pytest.raises(SettingsError) as caught:
            open_stream(CLIP, engine="cpu", **given)
        assert said in str(caught.value)
        assert str(caught.value).endswith("--query-lenient ignores the query")
        with open_stream(CLIP, engine="cpu", query_lenient=True, **given) as stream:
            assert stream.header.notes
    with opened("red", frames=3) as stream:
        with pytest.raises(ValueError, match=re.escape(said)):
            stream.set_query(queries)
        assert all(selection.participation is not None for selection in stream)
        assert all("query" not in selection.extras for selection in stream)
    with opened("red", query_lenient=True) as stream:
        assert queries[-1].lstrip("-") in stream.set_query(queries)[0]


def test_a_refused_query_leaves_the_one_before():
    with opened("red", frames=8) as stream:
        plain = [chosen(selection) for selection in stream]
    found = []
    with opened("red", frames=8) as stream:
        for selection in stream:
            found.append(chosen(selection))
            with pytest.raises(ValueError, match="movng"):
                stream.set_query(["blue", "movng"])
    assert found == plain


def test_ignored_words_stand_in_the_header_and_in_the_record_of_a_changed_query():
    with opened("a red car", "large shiny car", frames=12) as stream:
        header = json.loads(header_json(stream.header))
        assert header["query_ignored"] == ["car", "shiny"]
        assert stream.query_notes == (
            "query 'a red car': the attributes encoder does not understand, and ignores, 'car'",
            "query 'large shiny car': the attributes encoder does not understand, and ignores, 'shiny', 'car'",
        )
        told = []
        for selection in stream:
            if selection.index == 0:
                notes = stream.set_query(["blue van", "red"])
                assert stream.query_notes == notes
            told += [selection.extras["query_ignored"]] if "query_ignored" in selection.extras else []
            assert ("query_ignored" in selection.extras) == ("query" in selection.extras)
    assert told == [("van",)]
    with opened("red") as stream:
        assert "query_ignored" not in json.loads(header_json(stream.header))


def test_no_query_is_not_a_query_of_zero(monkeypatch):
    def never(*_):
        raise AssertionError("nothing is asked")

    monkeypatch.setattr("foveate.pipeline.cpu.pyramid.AttributeStack", never)
    with opened() as stream:
        assert all(selection.participation is None for selection in stream)


def test_a_query_of_unknown_words_takes_no_part():
    with opened("car", query_lenient=True) as stream, opened() as without:
        assert any("'car'" in note and "does not understand" in note for note in stream.header.notes)
        for one, other in zip(stream, without, strict=True):
            assert one.participation is None
            np.testing.assert_array_equal(one.x, other.x)
            np.testing.assert_array_equal(one.lod, other.lod)


def test_a_hundred_queries_cost_the_same_encoding_as_one(monkeypatch):
    counts = []
    update = AttributesEmbedder.update

    def counted(self, view):
        counts[-1] += 1
        return update(self, view)

    monkeypatch.setattr(AttributesEmbedder, "update", counted)
    colours = ("red", "green", "blue", "white", "black")
    hundred = [
        f"{colour} {place}:{n + 1}" for n in range(5) for colour in colours for place in ("left", "top", "small", "")
    ]
    assert len(hundred) == 100
    for queries in (hundred[:1], hundred[:2], hundred[:10], hundred):
        counts.append(0)
        with opened(*queries, maps=("query:red", "query:blue")) as stream:
            for selection in stream:
                assert selection.participation.max() > 0
    assert counts == [4, 4, 4, 4]


def test_a_map_of_words_is_what_a_query_of_them_finds():
    found = []
    for query, name in (("blue", "query:small red moving"), ("small red moving", "query")):
        with opened(query, maps=(name,), frames=20) as stream:
            found.append([selection.maps[name] for selection in stream])
    assert max(each.max() for each in found[1]) > 0.5
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_word_that_is_asked_for_in_several_ways_is_told_once(caplog):
    with (
        caplog.at_level(logging.WARNING, "foveate"),
        opened("car", "car", "red", maps=("query:car",), query_lenient=True) as stream,
    ):
        assert [message for message in caplog.messages if "'car'" in message] == [
            note for note in stream.header.notes if "'car'" in note
        ]
        assert len([note for note in stream.header.notes if "'car'" in note]) == 1


def test_what_stops_is_not_moving_any_more_although_no_later_frame_differs(tmp_path):
    rng = np.random.default_rng(1)
    wall = rng.integers(60, 120, (192, 320, 1), np.uint8).repeat(3, axis=2)
    thing = rng.integers(0, 256, (48, 48, 1), np.uint8).repeat(3, axis=2)
    for index in range(24):
        picture = wall.copy()
        left = 40 + 8 * min(index, 14)
        picture[64:112, left : left + 48] = thing
        cv2.imwrite(str(tmp_path / f"f_{index:02d}.png"), picture)
    with open_stream(str(tmp_path / "f_%02d.png"), engine="cpu", query=["moving"], maps=("query",)) as stream:
        moves = [float(selection.maps["query"].max()) for selection in stream]
    assert min(moves[12:15]) > 0.9
    assert max(moves[18:]) == 0


@pytest.mark.parametrize("step", [4, 8])
def test_a_plain_thing_that_crosses_slowly_moves_as_a_whole_also_when_its_inside_has_long_been_alike(tmp_path, step):
    wall = np.random.default_rng(1).integers(60, 120, (192, 320, 1), np.uint8).repeat(3, axis=2)
    lefts = [step * (index - 14) - 80 for index in range(70)]  # it comes when the wall is known
    for index, left in enumerate(lefts):
        picture = wall.copy()
        picture[64:112, max(left, 0) : max(left + 80, 0)] = 30, 30, 200
        cv2.imwrite(str(tmp_path / f"f_{index:02d}.png"), picture)
    checked = 0
    with open_stream(str(tmp_path / "f_%02d.png"), engine="cpu", query=["moving"], maps=("query",)) as stream:
        for selection, left in zip(stream, lefts, strict=True):
            if 16 <= left <= 320 - 96:
                checked += 1
                whole = slice(-(-left // 16), (left + 80) // 16)
                assert selection.maps["query"][4:7, whole].min() == 1
                near = slice(max(left // 16 - 2, 0), left // 16 + 7)  # what it has just left differs from it as well
                assert np.delete(selection.maps["query"], near, axis=1).max() == 0
    assert checked > 20


def test_maps_of_words():
    with opened("red left", frames=1, maps=("query", "query:red", "query:left")) as stream:
        maps = next(stream).maps
    np.testing.assert_allclose(maps["query"], np.minimum(maps["query:red"], maps["query:left"]))
    assert maps["query:red"].max() > 0.9
    assert maps["query:left"][:, 0].min() == 1
    assert maps["query:left"][:, -1].max() == 0
