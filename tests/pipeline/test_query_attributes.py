"""The attributes encoder: colours by name, text, what it understands, and that its maps are those of a rebuild."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.colors import XKCD_COLORS

from foveate.pipeline.attributes.colours import NAMES, tables
from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.attributes.regions import regions, sizes
from foveate.pipeline.attributes.vocabulary import VOCABULARY
from foveate.pipeline.cpu.attributes import AttributeStack
from foveate.pipeline.cpu.levels import Levels
from foveate.pipeline.frames import Colour
from foveate.pipeline.geometry import Geometry
from foveate.pipeline.phrase import Phrase

# Colours as web pages name them, and the basic term that people use for them.
CALLED = {
    (0, 0, 0): "black",
    (0, 0, 60): "blue",  # "dark blue"
    (255, 250, 225): "white",  # lit by a lamp
    (255, 255, 255): "white",
    (128, 128, 128): "grey",
    (190, 190, 190): "grey",
    (207, 205, 202): "grey",  # sunlit asphalt
    (240, 240, 235): "white",
    (116, 122, 63): "green",  # dry grass
    (128, 128, 0): "green",  # olive
    (255, 0, 0): "red",
    (200, 30, 30): "red",
    (140, 15, 15): "red",
    (145, 112, 108): "brown",  # no one's red
    (255, 70, 50): "red",
    (198, 81, 2): "orange",  # "dark orange"
    (255, 140, 0): "orange",
    (240, 130, 40): "orange",
    (255, 255, 0): "yellow",
    (230, 200, 30): "yellow",
    (164, 191, 32): "green",  # "pea"
    (0, 128, 0): "green",
    (60, 160, 60): "green",
    (30, 90, 40): "green",
    (0, 0, 255): "blue",
    (30, 60, 160): "blue",
    (90, 160, 230): "blue",
    (20, 30, 90): "blue",
    (128, 0, 128): "purple",
    (130, 60, 170): "purple",
    (255, 182, 193): "pink",
    (255, 105, 180): "pink",
    (255, 209, 220): "pink",  # pale
    (203, 65, 107): "pink",  # "dark pink"
    (139, 69, 19): "brown",
    (110, 70, 40): "brown",
    (196, 166, 97): "brown",  # "sandy brown"
}


def planes_of(rgb, colour):
    """Y, Cb and Cr, uint8, by the definitions of ITU-R BT.601 and BT.709."""
    kr, kb = (0.299, 0.114) if colour.matrix == "bt601" else (0.2126, 0.0722)
    red, green, blue = (np.asarray(rgb, float)[..., k] / 255 for k in range(3))
    y = kr * red + (1 - kr - kb) * green + kb * blue
    cb, cr = (blue - y) / (2 - 2 * kb), (red - y) / (2 - 2 * kr)
    if colour.full_range:
        return [np.rint(v).clip(0, 255).astype(np.uint8) for v in (255 * y, 255 * cb + 128, 255 * cr + 128)]
    return [np.rint(v).astype(np.uint8) for v in (219 * y + 16, 224 * cb + 128, 224 * cr + 128)]


@pytest.mark.parametrize("colour", [Colour("bt601", False), Colour("bt709", True)])
@pytest.mark.parametrize(("rgb", "name"), CALLED.items())
def test_colours_have_the_names_people_use(rgb, name, colour):
    y, cb, cr = (int(plane) for plane in planes_of(np.array(rgb), colour))
    assert NAMES[tables(colour).name[y >> 3, cb >> 2, cr >> 2]] == name


def surveyed():
    """R'G'B' and basic term of colours that a survey's names describe by it and nothing else, as "pea green".

    The survey is xkcd's, of 2010, in which 220,000 people named colours.
    """
    mixed = {"teal", "turquoise", "aqua", "lavender", "lilac", "violet", "magenta", "gold"}  # other colours' names
    mixed |= {f"{stem}{end}" for stem in (*NAMES, "purpl", "orang") for end in ("y", "ish")} | {"greyish", "reddish"}
    for name, code in XKCD_COLORS.items():
        *before, last = name.removeprefix("xkcd:").replace("gray", "grey").split()
        if last in NAMES and not mixed.intersection(before) and not any("/" in w or w in NAMES for w in before):
            yield tuple(int(code[k : k + 2], 16) for k in (1, 3, 5)), last


@pytest.mark.parametrize("colour", [Colour("bt601", False), Colour("bt709", True)])
def test_nine_in_ten_names_of_a_survey_are_met(colour):
    rgb, called = zip(*surveyed(), strict=True)
    y, cb, cr = planes_of(np.array(rgb), colour)
    found = np.array(NAMES)[tables(colour).name[y >> 3, cb >> 2, cr >> 2]]
    alike = found == np.array(called)
    assert len(alike) > 400
    assert alike.mean() >= 0.9  # the rest lies between two names, as "light light blue" or "very dark brown"
    for name in set(called):
        assert alike[np.array(called) == name].mean() > 0.5, name


@pytest.mark.parametrize(
    ("rgb", "word"),
    [
        ((220, 20, 60), "crimson"),
        ((255, 36, 0), "scarlet"),
        ((128, 0, 0), "maroon"),
        ((128, 0, 32), "burgundy"),
        ((255, 215, 0), "gold"),
        ((0, 255, 0), "lime"),
        ((128, 128, 0), "olive"),
        ((80, 200, 120), "emerald"),
        ((0, 255, 255), "cyan"),
        ((0, 0, 128), "navy"),
        ((0, 127, 255), "azure"),
        ((238, 130, 238), "violet"),
        ((255, 0, 255), "magenta"),
        ((255, 0, 255), "fuchsia"),
        ((206, 162, 253), "lilac"),
        ((75, 0, 130), "indigo"),
        ((255, 0, 127), "rose"),
        ((210, 180, 140), "tan"),
        ((230, 218, 166), "beige"),
        ((255, 255, 240), "ivory"),
        ((192, 192, 192), "silver"),
    ],
)
def test_other_words_for_colours_mean_the_name_under_which_such_a_colour_is_found(rgb, word):
    y, cb, cr = (int(plane) for plane in planes_of(np.array(rgb), Colour("bt709", True)))
    (ramp,) = VOCABULARY[word]
    assert ramp.input == tables(Colour("bt709", True)).name[y >> 3, cb >> 2, cr >> 2]


def stack_of(pictures, geometry, tiles_of):
    """The maps after writing each picture's tiles, one after the other."""
    colour = Colour()
    levels, stack = Levels(geometry, True), AttributeStack(geometry, colour)
    for index, ((luma, cb, cr), tiles) in enumerate(zip(pictures, tiles_of, strict=True)):
        levels.update((luma, cb, cr), tiles)
        stack.update(levels, tiles, index, new_scene=False)
    return stack.maps()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(33, 150), st.integers(33, 150))
def test_incremental_maps_are_those_of_a_rebuild(seed, width, height):
    random, geometry = np.random.default_rng(seed), Geometry(width, height)

    def picture():
        half = (height + 1) // 2, (width + 1) // 2
        coarse = random.integers(0, 256, (height, -(-width // 4))).repeat(4, axis=1)[:, :width]  # strokes 4 wide
        return coarse.astype(np.uint8), *(random.integers(0, 256, half).astype(np.uint8) for _ in range(2))

    first, second = picture(), picture()
    some = random.random(geometry.tiles) < 0.4
    pixels = some.repeat(32, 0).repeat(32, 1)
    merged = [
        np.where(pixels[:: 2 if k else 1, :: 2 if k else 1][: a.shape[0], : a.shape[1]], b, a)
        for k, (a, b) in enumerate(zip(first, second, strict=True))
    ]
    every = np.ones(geometry.tiles, np.bool_)
    step_by_step = stack_of([first, merged], geometry, [every, some])
    at_once = stack_of([merged], geometry, [every])
    assert step_by_step["text"].max() > 0
    for name in at_once.keys() - {"frame_difference", "foreground"}:  # these are about what was there before
        np.testing.assert_array_equal(step_by_step[name], at_once[name], name)


def plain_strokes(fine, step):
    """Strokes that end in each cell, sample by sample: an edge the other way at most 5 samples before, none between."""
    height, width = fine.shape
    count = np.zeros((height // 8, width // 8))
    for y, luma in enumerate(fine):
        before = (-100, 0)
        for x in range(1, width - 1):
            across = luma[x + 1] - luma[x - 1]
            sign = int(across > step) - int(across < -step)
            if sign:
                count[y // 8, x // 8] += sign == -before[1] and x - before[0] <= 5
                before = (x, sign)
    return count


@pytest.mark.parametrize("width", [40, 1400])
def test_the_kernel_is_its_plain_reference(width):
    random, geometry, colour = np.random.default_rng(width), Geometry(width, 70), Colour()
    luma = random.integers(0, 256, (70, width // 2)).repeat(2, axis=1)
    luma[:, ::7] = 128
    picture = [luma.astype(np.uint8), *random.integers(0, 256, (2, 35, width // 2), np.uint8)]
    levels, stack = Levels(geometry, True), AttributeStack(geometry, colour)
    levels.update(picture, np.ones(geometry.tiles, np.bool_))
    for index, share in enumerate((0.3, 0.9)):
        written = random.random(geometry.tiles) < share
        stack.update(levels, written, index, new_scene=False)
        cells = written.repeat(2, 0).repeat(2, 1)
        beside = cells | np.pad(cells, ((0, 0), (1, 0)))[:, :-1] | np.pad(cells, ((0, 0), (0, 1)))[:, 1:]
        strokes = plain_strokes(levels.luma.level(1), 0.1 * 219)
        assert strokes.max() > 8
        np.testing.assert_array_equal(stack.strokes[beside], strokes[beside])
        y, cb, cr = (np.rint(plane.level(2)).astype(int) for plane in levels.planes)
        named, lightness = (table[y >> 3, cb >> 2, cr >> 2] for table in tables(colour))
        of_cells = named.reshape(geometry.grid[0], 4, -1, 4).transpose(0, 2, 1, 3).reshape(*geometry.grid, 16)
        maps = stack.maps()
        for code in range(len(NAMES)):
            np.testing.assert_array_equal(maps[f"clip{code}"][cells], (of_cells == code).mean(axis=-1)[cells])
        light = lightness.reshape(geometry.grid[0], 4, -1, 4).mean(axis=(1, 3)) / 255
        np.testing.assert_allclose(maps["clip11"][cells], light[cells], rtol=1e-6)  # one rounding to float32


def test_shares_of_a_cell_add_up_and_are_of_its_own_pixels():
    geometry, rgb = Geometry(64, 64), np.zeros((64, 64, 3))
    rgb[:, :8] = 255, 0, 0  # the left half of the first cells
    rgb[:, 8:] = 255, 255, 255
    y, cb, cr = planes_of(rgb, Colour())
    maps = stack_of([(y, cb[::2, ::2].copy(), cr[::2, ::2].copy())], geometry, [np.ones((2, 2), np.bool_)])
    red, white = maps[f"clip{NAMES.index('red')}"], maps[f"clip{NAMES.index('white')}"]
    np.testing.assert_array_equal(red, [[0.5, 0, 0, 0]] * 4)
    np.testing.assert_array_equal(white, [[0.5, 1, 1, 1]] * 4)
    assert maps["clip11"][0, 3] > 0.95  # white is light


def test_text_is_strokes_in_rows():
    luma = np.full((96, 320), 200, np.uint8)
    luma[16:48, 32:160:8] = 30  # strokes, 2 wide, every 8 pixels
    luma[16:48, 33:160:8] = 30
    luma[64:96, 200] = 30  # a single line is no text
    luma[64:96, 260:] = 30  # nor is an edge
    half = np.full((48, 160), 128, np.uint8)
    geometry = Geometry(320, 96)
    text = stack_of([(luma, half, half)], geometry, [np.ones(geometry.tiles, np.bool_)])["text"]
    assert text[1:3, 2:10].min() > 0.9
    assert text[0].max() == text[3].max() == pytest.approx(0.6)
    assert text[4:].max() == 0


def test_what_lies_between_two_lines_is_text_too():
    luma = np.full((96, 320), 30, np.uint8)
    for top in (16, 48):
        luma[top : top + 16, 32:160:8] = luma[top : top + 16, 33:160:8] = 220
    half = np.full((48, 160), 128, np.uint8)
    geometry = Geometry(320, 96)
    text = stack_of([(luma, half, half)], geometry, [np.ones(geometry.tiles, np.bool_)])["text"]
    assert text[[1, 3], 2:10].min() > 0.9
    assert text[2, 2:10].min() > 0.5
    assert text[5:].max() == 0


def test_sizes_are_those_of_connected_regions():
    shares = np.zeros((2, 32, 64), np.float32)
    shares[0] = 1
    shares[0, 4:8, 4:8], shares[1, 4:8, 4:8] = 0, 1  # 16 cells of 2,048
    shares[1, 20, 20] = 0.5  # a single cell, shared
    smallest, largest = sizes(regions(shares, Geometry(1024, 512)), Geometry(1024, 512))
    of = {count: 1 + np.log2(count / 2048) / 13 for count in (1, 16, 2048 - 16)}
    assert smallest[5, 5] == largest[5, 5] == pytest.approx(of[16], abs=1e-5)
    assert smallest[20, 20] == pytest.approx(of[1], abs=1e-5)
    assert largest[20, 20] == largest[0, 0] == pytest.approx(of[2032], abs=1e-5)


def test_unknown_words_are_told_and_nothing_is_made_of_them():
    found = AttributesEncoder().compile([Phrase("the red car"), Phrase("dog"), Phrase("the")])
    assert [phrase.text for phrase in found.terms.phrases] == ["the red car"]
    assert len(found.terms.biases) == 1
    assert "'car'" in found.notes[0]
    assert "'dog'" in found.notes[1]
    assert "does not understand" in found.notes[1]
    assert "names no attribute" in found.notes[2]
    assert AttributesEncoder().compile([Phrase("dog")]).terms is None


@pytest.mark.parametrize(
    ("text", "word", "instead"),
    [
        ("not red", "'not'", "'-red'"),
        ("car without Text", "'without'", "'-red'"),
        ("non-moving", "'non'", "'-red'"),
        ("red OR blue", "'OR'", "a match with any of them counts"),
    ],
)
def test_nothing_is_made_of_words_whose_meaning_another_turns_around(text, word, instead):
    compiled = AttributesEncoder().compile([Phrase(text)])
    assert compiled.terms is None
    (note,) = compiled.notes
    assert f"does not understand {word}" in note
    assert instead in note
    (refused, kept) = AttributesEncoder().compile([Phrase(text), Phrase("blue")]), compiled
    assert [phrase.text for phrase in refused.terms.phrases] == ["blue"]
    assert refused.notes == kept.notes


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a Light in the dark", "'Light' and 'dark'"),
        ("left and right", "'left' and 'right'"),
        ("red bottom top car", "'bottom' and 'top'"),
        ("moving but still", "'moving' and 'still'"),
    ],
)
def test_words_that_exclude_each_other_are_told_and_nothing_is_made_of_them(text, words):
    compiled = AttributesEncoder().compile([Phrase(text)])
    assert compiled.terms is None
    assert compiled.notes == (f"query {text!r}: nothing is both {words}",)


@pytest.mark.parametrize("text", ["left centre", "top left", "dark red", "white text", "large dark", "bright light"])
def test_words_that_can_hold_together_are_taken_together(text):
    compiled = AttributesEncoder().compile([Phrase(text)])
    assert compiled.terms is not None
    assert compiled.notes == ()


@pytest.mark.parametrize("text", ["Left side", "left half", "the LEFT-hand", "object to the left"])
def test_what_people_write_around_a_word_changes_nothing(text):
    (plain, wordy) = (AttributesEncoder().compile([Phrase(each)]).terms for each in ("left", text))
    np.testing.assert_array_equal(plain.weights, wordy.weights)
