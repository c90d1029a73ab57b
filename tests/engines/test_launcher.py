"""Knobs and raw flags on one command line are told apart."""

import pytest

from loadgen.engines.launch.launcher import split_engine_args
from loadgen.errors import BadInput


def test_knobs_have_values_of_their_kind_and_flags_pass_through() -> None:
    knobs, raw = split_engine_args(
        [
            *("max_seqs=16", "memory-fraction=0.8", "prefix_cache=false", "kv_dtype=fp8"),
            *('speculative={"method": "ngram"}', "--dtype half", "--seed=1", "--note 'two words'"),
        ]
    )
    assert knobs == {
        "max_seqs": 16,
        "memory_fraction": 0.8,
        "prefix_cache": False,
        "kv_dtype": "fp8",
        "speculative": {"method": "ngram"},
    }
    assert raw == ["--dtype", "half", "--seed=1", "--note", "two words"]


@pytest.mark.parametrize(
    ("word", "field", "problem"),
    [
        ("max_seqs", "max_seqs", "neither a knob nor a flag"),
        ("max_sequences=3", "max_sequences", "neither a knob nor a flag"),
        ("max_seqs=many", "max_seqs", "not a whole number"),
        ("prefix_cache=perhaps", "prefix_cache", "not true or false"),
        ("speculative=ngram", "speculative", "not a mapping"),
        ("--note 'open", "--note", "cannot be split into words"),
    ],
)
def test_a_word_that_is_neither_is_refused_by_name(word: str, field: str, problem: str) -> None:
    with pytest.raises(BadInput, match=problem) as refused:
        split_engine_args([word])
    assert refused.value.field == field


def test_a_knob_is_given_once() -> None:
    with pytest.raises(BadInput, match="given twice"):
        split_engine_args(["max_seqs=3", "max-seqs=4"])


def test_a_knob_of_the_engine_alone_is_a_text() -> None:
    assert split_engine_args(["page-size=16", "max_seqs=3"], ["max_seqs", "page_size"]) == (
        {"page_size": "16", "max_seqs": 3},
        [],
    )
    with pytest.raises(BadInput, match=r"max_seqs, .*page_size"):
        split_engine_args(["page=16"], ["page_size"])
