"""What is known of a tokenizer is cached, so that a second run of random words parses no tokenizer."""

import pytest

from loadgen.workload.chat_template.template import ChatTemplate
from loadgen.workload.tokenizer import word_list
from loadgen.workload.tokenizer.tokenizer import Tokenizer, load
from tests.helpers import trained_tokenizers as trained

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path):
    """A tokenizer with a chat template."""
    (tmp_path / "tokenizer.json").write_bytes(trained.unigram(tmp_path).read_bytes())
    (tmp_path / "chat_template.jinja").write_text("<|user|>{{ messages[0].content }}<|end|>")
    return tmp_path


@pytest.fixture
def unparsed(monkeypatch):
    """Forbids to parse a tokenizer from now on, once called."""

    def forbid():
        monkeypatch.setattr(Tokenizer, "_core", property(lambda tokenizer: pytest.fail("the tokenizer was parsed")))

    return forbid


def facts(folder):
    tokenizer = load(str(folder))
    words = word_list.words_of(tokenizer)
    added = ChatTemplate.of(tokenizer).added_tokens(words.items[:4].tolist())
    return tokenizer.size, tokenizer.own_size, tokenizer.special_tokens, words.items.tolist(), words.additive, added


def test_second_time_parses_no_tokenizer(folder, unparsed):
    first = facts(folder)
    unparsed()
    assert facts(folder) == first


def test_counting_a_text_parses_the_tokenizer(folder):
    counts = load(str(folder)).count(["one two three"])
    assert load(str(folder)).count(["one two three"]) == counts


def test_another_template_is_counted_anew(folder):
    before = facts(folder)[-1]
    (folder / "chat_template.jinja").write_text("<|user|>{{ messages[0].content }}<|end|> and more of it")
    assert facts(folder)[-1] > before


def test_template_that_asks_for_the_date_is_counted_each_time(folder, unparsed):
    (folder / "chat_template.jinja").write_text("{{ strftime_now('%Y') }} {{ messages[0].content }}")
    facts(folder)
    unparsed()
    with pytest.raises(pytest.fail.Exception):
        facts(folder)
