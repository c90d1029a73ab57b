"""Repeated prefixes: a few exact texts, each shared by an equal number of prompts."""

from collections import Counter

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.chat_template.prediction import TokenPrediction
from loadgen.workload.chat_template.template_tokens import TemplateTokens
from loadgen.workload.target import Target
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import chat_templates
from tests.helpers import trained_tokenizers as trained
from tests.workload.test_random_words import SIMULATOR

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers


def options(path=SIMULATOR, **changes):
    short = {name.removeprefix("prefix_repetition_"): value for name, value in changes.items()}
    own = {f"prefix_repetition_{name}": short.pop(name) for name in LENGTHS if name in short}
    return RunSettings(dataset_name="prefix_repetition", tokenizer=str(path), **own, **short)


LENGTHS = ("prefix_len", "suffix_len", "num_prefixes", "output_len")


def prompts(count=100, path=SIMULATOR, **changes):
    return list(datasets.create(options(path, **changes)).prompts(count))


@pytest.mark.slow
def test_prompts_are_exact_and_begin_with_a_prefix(tokenizer):
    made = prompts(30, tokenizer.name, prefix_len=40, suffix_len=17, num_prefixes=3)
    texts = [prompt.text for prompt in made]
    assert {prompt.input_tokens for prompt in made} == {57}
    assert tokenizer.count(texts, special=True) == [57] * 30
    ids = tokenizer.encode_batch(texts)
    shared = 39 if "superwords" in tokenizer.name else 40  # the last word may be a token with what follows
    assert sorted(Counter((*own[:shared],) for own in ids).values()) == [10, 10, 10]
    assert len({(*own[:44],) for own in ids}) == 30


def test_prefixes_begin_equally_many_prompts_or_one_fewer():
    assert sorted(Counter(prompt.text.split()[0] for prompt in prompts(103)).values()) == [10] * 7 + [11] * 3


def test_vllms_lengths_are_the_usual_ones():
    assert {(prompt.input_tokens, prompt.output_tokens) for prompt in prompts()} == {(512, 128)}


def test_zero_prefix_length_gives_no_shared_prefix():
    made = prompts(50, prefix_len=0, suffix_len=8)
    assert len({prompt.text.split()[0] for prompt in made}) > 40
    assert {prompt.input_tokens for prompt in made} == {8}


def test_the_seeds_change_what_they_are_for():
    one, other = prompts(), prompts(seed_order=1)
    assert one != other
    assert {*one} == {*other}
    assert not {p.text.split()[0] for p in one} & {p.text.split()[0] for p in prompts(seed_prompts=1)}


def test_special_tokens_take_their_part_of_the_suffix(tmp_path):
    path = trained.wordpiece(tmp_path)
    (prompt,) = prompts(1, path, prefix_len=10, suffix_len=5)
    assert (prompt.input_tokens, len(prompt.text.split())) == (15, 13)
    with pytest.raises(BadInput) as refused:
        prompts(1, path, suffix_len=2)
    message = "--prefix-repetition-suffix-len: 2 leaves no token after 2 special tokens; give at least 3"
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [("prefix_len", -1, "0 tokens or more"), ("suffix_len", 0, "1 token or more"), ("num_prefixes", 0, "1 or more")],
)
def test_lengths_that_are_none_are_refused(name, value, least):
    with pytest.raises(BadInput) as refused:
        prompts(1, **{name: value})
    assert str(refused.value) == f"--prefix-repetition-{name.replace('_', '-')}: {value} is out of range; give {least}"


def test_provenance_names_prefixes_and_lengths():
    said = datasets.create(options(num_prefixes=4)).provenance()
    assert (said["prefixes"], said["prefix_tokens"], said["suffix_tokens"], said["words"]) == (4, 256, 256, 4096)


class TestAsTheServerCounts:
    """The lengths of prefix and suffix together, a chat template's tokens included."""

    CHAT = RunSettings(backend="openai-chat")
    MEASURED = RunSettings(backend="openai-chat", input_len_counts="server")

    def made(self, path, asked, told=None, count=20, **changes):
        """The prompts as a run has them, counted."""
        dataset = datasets.create(options(path, **changes))
        counting = TokenPrediction.of(dataset, asked, Target.from_settings(asked, "m"), told)
        return list(counting.predict(counting.sized(dataset, asked).prompts(count))), counting

    @pytest.mark.parametrize("make", [trained.wordpiece, trained.superwords])
    def test_the_server_counts_what_was_asked_and_the_prefix_stays(self, make, tmp_path):
        template = "{% for m in messages %}<>{{ m.content }}</{% endfor %}"
        path = chat_templates.beside(make(tmp_path), template, tmp_path / "served")
        made, counting = self.made(path, self.MEASURED, prefix_len=40, suffix_len=30, num_prefixes=3)
        texts = [prompt.text for prompt in made]
        assert counting.measure(texts) == [prompt.server_tokens for prompt in made] == [70] * 20
        assert load(str(path)).count(texts, special=True) == [prompt.input_tokens for prompt in made]
        assert len({(*text.split()[:39],) for text in texts}) == 3

    def test_raw_lengths_keep_prompts_and_predict_counts(self):
        made, _ = self.made(SIMULATOR, self.CHAT, TemplateTokens(9, "told"), prefix_len=40, suffix_len=30)
        assert {(prompt.input_tokens, prompt.server_tokens) for prompt in made} == {(70, 79)}
        assert [prompt.text for prompt in made] == [p.text for p in prompts(20, prefix_len=40, suffix_len=30)]

    def test_suffix_below_the_template_is_refused(self):
        with pytest.raises(BadInput) as refused:
            self.made(SIMULATOR, self.MEASURED, TemplateTokens(9, "told"), suffix_len=9)
        message = "--prefix-repetition-suffix-len: 9 leaves no token after 9 of the chat template; give at least 10"
        assert str(refused.value) == message

    def test_where_tokens_do_not_add_up_one_number_is_not_enough(self, tmp_path):
        with pytest.raises(BadInput, match=r"--input-len-counts: .* joins words into tokens"):
            self.made(trained.superwords(tmp_path), self.MEASURED, TemplateTokens(9, "told"))
