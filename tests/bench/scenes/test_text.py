"""Drawn clips: what is said to be written is written, and moves as said."""

import pytest

from foveate.bench.scenes.text import HEIGHT, TEXT_SCENES, WIDTH


@pytest.mark.parametrize("name", TEXT_SCENES)
def test_every_frame_has_its_size_and_its_words_and_is_drawn_again_the_same(name: str) -> None:
    once, again = ([*TEXT_SCENES[name].frames(3)] for _ in range(2))
    assert len(once) == 3
    for (picture, told), (other, _) in zip(once, again, strict=True):
        assert picture.shape == (HEIGHT, WIDTH, 3)
        assert len(told) >= 10
        assert (picture == other).all()
    assert TEXT_SCENES[name].how.startswith("generated: ")


def test_the_page_scrolls_by_two_pixels() -> None:
    (first, _), (second, _) = TEXT_SCENES["scroll"].frames(2)
    assert (first[2:] == second[:-2]).all()


def test_a_slide_stays_for_twenty_frames() -> None:
    told = [words for _, words in TEXT_SCENES["slides"].frames(22)]
    assert len(set(told[:20])) == 1
    assert told[20] != told[19]


def test_the_terminal_scrolls_when_it_is_full() -> None:
    counts = [len(words) for _, words in TEXT_SCENES["terminal"].frames(60)]
    assert counts[0] < counts[3] < counts[-1] == 21 * 8
