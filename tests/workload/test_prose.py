"""Prose prompts are sensible English of an exact token count with a shared prefix."""

import dataclasses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.prose import cut_to_tokens
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT
from tests.workload.test_random_words import SIMULATOR

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

# A word of the text may be several tokens, so that none is one.
PREFIXES = st.just(0) | st.integers(8, 900)
TEXT = ROOT / "loadgen" / "workload" / "datasets" / "prose.txt"


def options(path=SIMULATOR, **changes):
    return RunSettings(**{"dataset_name": "prose", "tokenizer": str(path), **changes})


def prompts(count=100, path=SIMULATOR, **changes):
    return list(datasets.create(options(path, **changes)).prompts(count))


def lengths(own, prefix=0):
    return {"sonnet_input_len": prefix + own, "sonnet_prefix_len": prefix}


@pytest.fixture(scope="session")
def dataset(tokenizer):
    """Prose in every family of tokenizers, by the usual settings."""
    return datasets.create(options(tokenizer.name))


class TestExactness:
    @pytest.mark.slow
    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(own=st.integers(20, 900), prefix=PREFIXES, seed=st.integers(0, 2**63 - 1))
    def test_every_length_is_exact_in_every_family(self, tokenizer, dataset, own, prefix, seed):
        asked = options(**lengths(own, prefix), seed_prompts=seed)
        made = [*dataclasses.replace(dataset, settings=asked).prompts(3)]
        assert {prompt.input_tokens for prompt in made} == {own + prefix}
        assert tokenizer.count([prompt.text for prompt in made], special=True) == [own + prefix] * 3

    def test_the_prefix_is_shared_to_the_token_and_the_rest_is_not(self, tokenizer, dataset):
        ids = tokenizer.encode_batch([prompt.text for prompt in dataset.prompts(20)])
        assert len({(*own[:200],) for own in ids}) == 1
        assert len({(*own[:300],) for own in ids}) > 15  # two rows may begin with the same line

    def test_more_than_the_whole_text_is_gone_through_again(self):
        (prompt,) = prompts(1, **lengths(100, prefix=20_000))
        assert load(str(SIMULATOR)).count([prompt.text]) == [20_100]

    def test_trimming_template_does_not_change_the_text(self, dataset):
        assert all(prompt.text == prompt.text.strip() for prompt in dataset.prompts(20))


class TestText:
    def test_is_of_our_lines_in_any_order_after_the_first_ones(self):
        lines = TEXT.read_text().splitlines()
        (prompt,) = prompts(1, **lengths(300))
        found = [line for line in lines if line in prompt.text]
        assert sum(map(len, found)) > 0.8 * len(prompt.text)
        assert not prompt.text.startswith(lines[0])
        assert prompts(1)[0].text.startswith(" ".join(lines[:2]))

    def test_is_plain_english_that_no_encoding_can_hurt(self):
        lines = TEXT.read_text().splitlines()
        assert 120 <= len(lines) <= 200
        assert TEXT.read_text().isascii()
        assert len({*lines}) == len(lines)

    def test_can_be_that_of_a_file(self, tmp_path):
        path = tmp_path / "sonnet.txt"
        path.write_text("Seven ducks went over the weir.\n\n  Nobody asked them why.  \n")
        (prompt,) = prompts(1, dataset_path=str(path), **lengths(40))
        assert {*prompt.text.split()} <= {*path.read_text().split(), prompt.text.split()[-1]}

    def test_cut_at_digits_and_white_space_tokens(self, tmp_path):
        text = "In 1917 , 42   % of 3.5  million ( or so ) 日本 - fell ... "
        tokenizer = load(str(SIMULATOR))
        for tokens in range(5, 60):
            (short,) = cut_to_tokens([(text * 9, tokens)], tokens, tokenizer)
            assert tokenizer.count([short]) == [tokens]
            assert not short[-1].isspace()


class TestSeeds:
    def test_the_same_settings_give_the_same_prompts(self):
        assert prompts() == prompts()

    def test_sonnet_is_another_name(self):
        assert prompts(dataset_name="sonnet") == prompts()

    def test_the_order_seed_changes_the_order_only(self):
        one, other = prompts(), prompts(seed_order=1)
        assert one != other
        assert {*one} == {*other}

    def test_the_prompt_seed_changes_what_follows_the_prefix(self):
        assert not {prompt.text for prompt in prompts()} & {
            prompt.text for prompt in prompts(seed_prompts=1)
        }

    def test_fewer_prompts_are_the_first_rows_of_more(self):
        assert {prompt.source: prompt for prompt in prompts(20)}.items() <= {
            p.source: p for p in prompts(600)
        }.items()

    def test_prompts_are_distinct(self):
        assert len({prompt.text for prompt in prompts(1000)}) == 1000

    def test_vllms_lengths_are_the_usual_ones(self):
        assert {(prompt.input_tokens, prompt.output_tokens) for prompt in prompts(3)} == {
            (550, 150)
        }

    def test_provenance_names_text_lengths_and_tokenizer(self):
        said = datasets.create(options(seed=5)).provenance()
        assert (said["file"], said["lines"]) == ("prose.txt", len(TEXT.read_text().splitlines()))
        assert (said["prefix_tokens"], said["input_tokens"], said["seed_prompts"]) == (200, 550, 5)


class TestBadInput:
    def test_a_prefix_that_fills_the_prompt(self):
        with pytest.raises(BadInput) as refused:
            datasets.create(options(sonnet_input_len=201))
        problem = "201 leaves no room after a prefix of 200 tokens"
        assert (
            str(refused.value)
            == f"--sonnet-input-len: {problem}; raise it, or lower --sonnet-prefix-len"
        )

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (None, "cannot be read (No such file or directory)"),
            (b" \n", "contains no text"),
            (b"\xff", "is not UTF-8"),
        ],
    )
    def test_a_text_that_is_none(self, tmp_path, content, problem):
        path = tmp_path / "text.txt"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(BadInput) as refused:
            datasets.create(options(dataset_path=str(path)))
        remedy = (
            "give a text file with a sentence on each line, or leave it out for the built-in text"
        )
        assert str(refused.value) == f"--dataset-path: {path} {problem}; {remedy}"

    def test_a_text_that_cannot_be_cut_where_it_must_be(self, tmp_path):
        with pytest.raises(
            BadInput, match=r"--tokenizer: .* cannot cut a text to 50 tokens; use another"
        ):
            cut_to_tokens([("one two", 7)], 50, load(str(trained.word_level(tmp_path))))
