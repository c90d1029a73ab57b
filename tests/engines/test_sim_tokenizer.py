"""The shipped tokenizer, and token counts without one."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from loadgen.engines.sim import tokenizer
from loadgen.engines.sim.emit import count_tokens
from loadgen.engines.sim.tokenizer import SimTokenizer

REAL = Tokenizer.from_file(str(tokenizer.TOKENIZER))
OURS = SimTokenizer()
NEAR_THE_RULES = st.text(alphabet="aZ09 5 \n\t.,<>é日\u0301\u00a0\u2028\x00\U0001f600", max_size=60)


def test_the_file_is_what_its_generator_makes() -> None:
    assert tokenizer.TOKENIZER.read_text() == tokenizer.text()
    assert tokenizer.TOKENIZER.stat().st_size < 200_000


def test_each_word_is_short_ascii_and_one_token() -> None:
    words = tokenizer.words()
    assert len(set(words)) == tokenizer.WORDS
    assert all(word.isascii() and word.isalpha() and 2 <= len(word) <= 14 for word in words)
    for form in (words, [" " + word for word in words]):
        encoded = REAL.encode_batch(form)
        assert all(len(each.ids) == 1 for each in encoded)
        assert REAL.token_to_id(tokenizer.UNKNOWN) not in {each.ids[0] for each in encoded}


def test_joined_words_are_as_many_tokens_and_decode_back() -> None:
    text = " ".join(tokenizer.words())
    encoded = REAL.encode(text)
    assert len(encoded.ids) == tokenizer.WORDS
    assert REAL.decode(encoded.ids) == text


@pytest.mark.integration
@given(st.text(max_size=200) | NEAR_THE_RULES)
def test_counting_agrees_with_the_tokenizer_for_any_text(text: str) -> None:
    assert count_tokens(text) == len(REAL.encode(text).ids)


@given(st.text(max_size=100) | NEAR_THE_RULES)
def test_ids_agree_with_the_tokenizer_for_any_text(text: str) -> None:
    assert OURS.encode(text) == REAL.encode(text).ids


ODD_TEXTS = (
    "",
    " ",
    "  ",
    "a",
    " a",
    "  a",
    "a ",
    "a1",
    "1a",
    "1234567",
    " 1234",
    "\x00\x00",
    "\r\n\r\n",
    "<unk>",
    "a\u0301b",
    "日本語 日本",
    "\ufeffa",
    "\u2028\u2029",
    "\U0001f469\u200d\U0001f467 ok",
    "\U0010ffff",
    "İſK",
    "１２",
    *("a" * 100_000, " " * 10_000),
)


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_counting_agrees_on_odd_texts(text: str) -> None:
    assert count_tokens(text) == len(REAL.encode(text).ids) == len(OURS.encode(text))


def test_answers_come_from_all_words_and_are_as_many_tokens() -> None:
    assert OURS.words.count == tokenizer.WORDS
    for tokens in (1, 2, 1000):
        assert len(REAL.encode(OURS.words.text(7, tokens)).ids) == tokens


def test_text_with_lone_surrogates_cannot_be_counted() -> None:
    with pytest.raises(UnicodeEncodeError):
        count_tokens(json.loads('"\\ud800"'))
