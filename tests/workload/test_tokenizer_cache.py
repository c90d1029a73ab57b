"""What is known of a tokenizer is cached, so that a second run of random words parses no
tokenizer.
"""

import pytest

from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.files import cache
from loadgen.workload.tokenizer import exact_text
from loadgen.workload.tokenizer.tokenizer import Tokenizer, load
from tests.helpers import trained_tokenizers as trained

# Tokenizers take most of its time.
pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def folder(tmp_path):
    return trained.with_template(tmp_path)


@pytest.fixture
def unparsed(monkeypatch):
    """Forbids to parse a tokenizer from now on, once called."""

    def forbid():
        monkeypatch.setattr(
            Tokenizer, "_core", property(lambda tokenizer: pytest.fail("the tokenizer was parsed"))
        )

    return forbid


def facts(folder):
    tokenizer = load(str(folder))
    words = exact_text.words_of(tokenizer)
    added = ChatTemplate.of(tokenizer).added_tokens(words.items[:4])
    return (
        tokenizer.size,
        tokenizer.own_size,
        tokenizer.special_tokens,
        words.items,
        words.additive,
        added,
    )


def test_second_time_parses_no_tokenizer(folder, unparsed):
    first = facts(folder)
    unparsed()
    assert facts(folder) == first


def test_counting_a_text_parses_the_tokenizer(folder):
    counts = load(str(folder)).count(["one two three"])
    assert load(str(folder)).count(["one two three"]) == counts


def test_another_template_is_counted_anew(folder):
    before = facts(folder)[-1]
    (folder / "chat_template.jinja").write_text(
        "<|user|>{{ messages[0].content }}<|end|> and more of it"
    )
    assert facts(folder)[-1] > before


def test_template_that_asks_for_the_date_is_counted_each_time(folder, unparsed):
    (folder / "chat_template.jinja").write_text(
        "{{ strftime_now('%Y') }} {{ messages[0].content }}"
    )
    facts(folder)
    unparsed()
    with pytest.raises(pytest.fail.Exception):
        facts(folder)


def test_a_fact_that_another_process_makes_is_waited_for(monkeypatch):
    made = []

    def other_process_ends(seconds):
        made.append(seconds)
        cache.write(cache._fact_entry("kind", "hash", []), b"7")
        other.__exit__(None, None, None)

    other = cache.locked("hash")
    other.__enter__()
    monkeypatch.setattr(cache.time, "sleep", other_process_ends)
    assert cache.get_or_make_fact("kind", "hash", [], lambda: pytest.fail("it was made twice")) == 7
    assert len(made) == 1


def test_a_process_that_makes_facts_for_too_long_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(cache, "LOCKED_S", 0.0)
    with cache.locked("hash"):
        assert cache.get_or_make_fact("kind", "hash", [], lambda: 7) == 7


def test_facts_are_made_without_a_cache_folder(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    assert cache.get_or_make_fact("kind", "hash", [], lambda: 7) == 7
