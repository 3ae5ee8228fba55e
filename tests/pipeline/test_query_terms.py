"""Queries as they are written, and as numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate.pipeline.phrase import HEAVIEST, Phrase, parse
from foveate.pipeline.query.terms import INPUTS, combined_relevance, query_terms, relevance


@pytest.mark.parametrize(
    ("query", "phrase"),
    [
        ("red car", Phrase("red car")),
        ("  -sky ", Phrase("sky", negative=True)),
        ("- grey sky : 0.5", Phrase("grey sky : 0.5", negative=True)),  # a weight stands right behind its colon
        ("-sky:0.25", Phrase("sky", 0.25, True)),
        ("dog:2", Phrase("dog", 2.0)),
        ("semi-truck", Phrase("semi-truck")),
        ("größe\nzwei", Phrase("größe\nzwei")),
        ("10:30 clock", Phrase("10:30 clock")),
        ("dog:.5", Phrase("dog", 0.5)),
        ("dog:2.", Phrase("dog", 2.0)),
        ("dog:1e-1", Phrase("dog", 0.1)),
        ("dog:nancy", Phrase("dog:nancy")),
        ("\u2212sky", Phrase("sky", negative=True)),  # a minus sign, and the dashes that editors make of one
        ("\u2013sky:2", Phrase("sky", 2.0, True)),
        ("\u2014 sky", Phrase("sky", negative=True)),
        ("black - white photograph", Phrase("black - white photograph")),
        ("thermometer at -5", Phrase("thermometer at -5")),
    ],
)
def test_phrases(query, phrase):
    assert parse(query) == phrase


@pytest.mark.parametrize("query", ["", "  ", "-", "--", "\u2212", "!?", "-" * 1_001])
def test_what_is_no_query(query):
    with pytest.raises(ValueError, match="query must have words"):
        parse(query)


@pytest.mark.parametrize("weight", ["0", "0.0", "11", "-1", "-.5", "1e9", "nan", "NaN", "inf", "-inf", "+Inf"])
def test_other_weights_are_refused_and_not_taken_for_words(weight):
    with pytest.raises(ValueError, match="weight must be above 0 and at most 10"):
        parse(f"dog:{weight}")


@pytest.mark.parametrize("query", ["red -blue", "red car \u2013blue:2", "-red -blue", "car\n-blue sky"])
def test_a_minus_sign_inside_a_query_is_refused_as_its_words_are_wanted_together(query):
    with pytest.raises(ValueError, match="must be a query of its own, '-blue'"):
        parse(query)


def test_a_long_query_is_cut():
    assert parse("-" + "x" * 10_000) == Phrase("x" * 999, negative=True)
    assert parse("  " + "x" * 1_000 + "  ") == Phrase("x" * 1_000)


@given(st.text(max_size=30))
def test_any_text_is_a_phrase_or_refused(query):
    try:
        phrase = parse(query)
    except ValueError:
        return
    assert phrase.text == phrase.text.strip()
    assert 0 < phrase.weight <= HEAVIEST


def term(index, gain, bias):
    weights = np.zeros(INPUTS, np.float32)
    weights[index] = gain
    return weights, bias


def test_all_terms_of_a_query_must_hold_and_one_query_is_enough():
    asked = query_terms(
        [Phrase("a"), Phrase("b", 0.5), Phrase("c", 1.0, True)],
        [[term(0, 2, 0), term(1, 1, 0.25)], [term(2, 1, 0)], [term(3, 4, -1)]],
        "ramp",
    )
    cells = np.zeros((INPUTS, 3), np.float32)
    cells[:4, 0] = 0.5, 0.25, 1, 0  # a: min(1, 0.5); b: 1; c: clip(-1)
    cells[:4, 1] = 0.1, 9, 0, 0.375  # a: min(0.2, 1); b: 0; c: 0.5
    cells[:4, 2] = 0, 1, -7, 1  # a: min(0, 1); b: clip(-7); c: clip(3)
    maps = relevance(asked, cells)
    np.testing.assert_allclose(maps, [[0.5, 0.2, 0], [1, 0, 0], [0, 0.5, 1]], atol=1e-6)
    # max(a, b / 2) times 1 - c
    np.testing.assert_allclose(combined_relevance(asked, maps), [0.5, 0.1, 0], atol=1e-6)


def test_only_what_is_not_wanted():
    asked = query_terms([Phrase("sky", 2.0, True)], [[term(5, 1, 0)]], "ramp")
    cells = np.zeros((INPUTS, 2, 2), np.float32)
    cells[5] = [[0, 0.25], [0.5, 1]]
    np.testing.assert_allclose(combined_relevance(asked, relevance(asked, cells)), [[1, 0.5], [0, 0]])


def test_sigmoid():
    asked = query_terms([Phrase("dog")], [[term(0, 1, 0), term(1, 1, 0)]], "sigmoid")
    cells = np.zeros((INPUTS, 3), np.float32)
    cells[0], cells[1] = [0, 100, 1e6], [1, -100, 1e6]
    np.testing.assert_allclose(relevance(asked, cells), [[0.5, 0, 1]], atol=1e-6)


def test_a_query_without_terms_is_refused():
    with pytest.raises(ValueError, match="'dog' has none"):
        query_terms([Phrase("dog")], [[]], "ramp")
