"""Which words of a question are looked for."""

import pytest

from foveate.pipeline.attributes.encoder import AttributesEncoder
from foveate.pipeline.attributes.vocabulary import queries_in
from foveate.pipeline.relevance.stream_query import compile_queries


@pytest.mark.parametrize(
    ("question", "queries"),
    [
        ("What are the people doing?", ()),
        ("", ()),
        ("Who is Moving on the left, moving fast?", ("moving left",)),
        ("Is the red or the blue car faster?", ("red", "blue")),
        ("What does the small sign not say?", ("small sign",)),
        ("-red:7 is it?", ("red",)),
        ("Is it on the left or on the right?", ("left", "right")),
    ],
)
def test_the_words_that_name_attributes_are_looked_for(question: str, queries: tuple[str, ...]) -> None:
    assert queries_in(question) == queries
    compiled = compile_queries(AttributesEncoder(), queries)
    assert (compiled.refused, compiled.ignored) == ((), ())
