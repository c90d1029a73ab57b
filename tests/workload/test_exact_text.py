"""The words of a tokenizer are found once and cached until the tokenizer changes."""

import pytest

from loadgen.workload.files import cache
from loadgen.workload.tokenizer import exact_text
from loadgen.workload.tokenizer.exact_text import Words
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained

# Tokenizers take most of its time.
pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def searches(monkeypatch):
    """The tokenizers whose words are looked for."""
    made, original = [], Words.of
    monkeypatch.setattr(
        Words, "of", lambda tokenizer: made.append(tokenizer) or original(tokenizer)
    )
    return made


@pytest.fixture(scope="module")
def unigram(tmp_path_factory):
    return load(str(trained.unigram(tmp_path_factory.mktemp("unigram"))))


@pytest.fixture(scope="module")
def superwords(tmp_path_factory):
    return load(str(trained.superwords(tmp_path_factory.mktemp("superwords"))))


def same(one, other):
    return one.items == other.items and one.additive is other.additive


def test_words_are_found_once(unigram, searches):
    found = exact_text.words_of(unigram)
    assert same(exact_text.words_of(unigram), found)
    assert len(searches) == 1


def test_cached_words_equal_those_found(unigram, superwords):
    for tokenizer in (unigram, superwords):
        exact_text.words_of(tokenizer)
        assert same(exact_text.words_of(tokenizer), Words.of(tokenizer))


def test_tokenizers_have_words_of_their_own(unigram, superwords):
    assert not same(exact_text.words_of(unigram), exact_text.words_of(superwords))


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-9], lambda data: data.replace(b"true", b"null"), lambda data: b""],
)
def test_a_file_that_is_not_as_it_was_written_is_made_again(unigram, searches, damage):
    found = exact_text.words_of(unigram)
    (place,) = cache.folder().glob("*.words")
    place.write_bytes(damage(place.read_bytes()))
    assert same(exact_text.words_of(unigram), found)
    assert len(searches) == 2
    assert same(exact_text.words_of(unigram), found)
    assert len(searches) == 2


def test_word_cache_is_private_to_its_owner(unigram):
    exact_text.words_of(unigram)
    (place,) = cache.folder().glob("*.words")
    assert place.stat().st_mode & 0o777 == 0o600


def test_words_are_found_again_without_a_cache(tmp_path, unigram, searches):
    (tmp_path / "cache").write_text("no folder")
    assert same(exact_text.words_of(unigram), exact_text.words_of(unigram))
    assert len(searches) == 2
