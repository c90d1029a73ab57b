"""Random prompts have the exact token count with any tokenizer and depend only on their seeds."""

from collections import Counter
from itertools import takewhile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.lengths import Lengths
from loadgen.workload.datasets.prefix_groups import PrefixGroups
from loadgen.workload.datasets.random_words import RandomDataset
from loadgen.workload.tokenizer.exact_text import Words, fit_texts
from loadgen.workload.tokenizer.random_text import RandomText
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"
LENGTHS = st.integers(1, 2000)
PINNED = [
    "donpil rorail vuzujau sotrelaur jun vemvail",
    "donpil rorail maindaikebre tropli talbrain demnaupil",
    "donpil rorail holubu plumstomror lenauke si",
]


@pytest.fixture(scope="session")
def words(tokenizer):
    return Words.of(tokenizer)


@pytest.fixture(scope="module")
def superwords(tmp_path_factory):
    return load(str(trained.superwords(tmp_path_factory.mktemp("superwords"))))


def dataset(tokenizer, words, *, prefix=0, inputs=(20, 20), seed=0):
    drawing = RandomText(tokenizer, words, seed)
    return RandomDataset(drawing, Lengths(*inputs), Lengths(5, 5), seed, PrefixGroups(prefix))


def options(**changes):
    return RunSettings(tokenizer=str(SIMULATOR), **changes)


def prompts(count=100, **changes):
    return list(datasets.create(options(**changes)).prompts(count))


class TestWords:
    @pytest.mark.slow
    def test_a_text_of_them_is_as_many_tokens_in_every_family(self, tokenizer, words):
        items = list(words.items)
        for text in (items[:1], items[:50], items):
            assert words.additive is False or tokenizer.count([" ".join(text)]) == [len(text)]
        assert tokenizer.count(items) == [1] * len(items)

    @pytest.mark.slow
    def test_first_word_after_other_text_may_be_more_tokens(self, tmp_path):
        """Why what a chat template adds is counted with words in it, and not taken to be its own
        tokens.
        """
        tokenizer = load(str(trained.unigram(tmp_path)))
        words = list(Words.of(tokenizer).items)
        (alone,) = tokenizer.count(["\n"])
        assert {count - alone for count in tokenizer.count([f"\n{word}" for word in words])} > {1}


class TestExactness:
    @pytest.mark.slow
    @settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(low=LENGTHS, high=LENGTHS, prefix=st.integers(0, 300), seed=st.integers(0, 2**64))
    def test_every_length_is_exact_in_every_family(self, tokenizer, words, low, high, prefix, seed):
        low, high = sorted((low, high))
        made = list(
            dataset(tokenizer, words, prefix=prefix, inputs=(low, high), seed=seed).prompts(3)
        )
        assert tokenizer.count([prompt.text for prompt in made], special=True) == [
            prompt.input_tokens for prompt in made
        ]
        own = [prompt.input_tokens - prefix - tokenizer.special_tokens for prompt in made]
        assert all(low <= length <= high for length in own)

    @pytest.mark.slow
    def test_a_very_long_prompt_is_exact(self, tokenizer, words):
        (prompt,) = dataset(tokenizer, words, inputs=(32000, 32000)).prompts(1)
        assert tokenizer.count([prompt.text]) == [32000]

    @pytest.mark.slow
    def test_trimming_template_does_not_change_the_text(self, tokenizer, words):
        (prompt,) = dataset(tokenizer, words).prompts(1)
        assert prompt.text == prompt.text.strip()

    def test_prefix_is_shared_and_exact(self, tokenizer, words):
        made = list(dataset(tokenizer, words, prefix=50).prompts(20))
        columns = zip(*(prompt.text.split() for prompt in made), strict=False)
        shared = [column[0] for column in takewhile(lambda column: len({*column}) == 1, columns)]
        assert tokenizer.count([" ".join(shared)]) == [50]
        assert {prompt.input_tokens for prompt in made} == {70 + tokenizer.special_tokens}

    def test_special_tokens_are_part_of_the_length_asked_for(self, tmp_path):
        path = trained.wordpiece(tmp_path)
        (prompt,) = datasets.create(RunSettings(tokenizer=str(path), random_input_len=10)).prompts(
            1
        )
        assert prompt.input_tokens == 10
        assert load(str(path)).count([prompt.text], special=True) == [10]
        assert len(prompt.text.split()) == 8


class TestGuard:
    """Words whose tokens do not add up: no common tokenizer has such, so the guard has its own."""

    def test_only_tokens_that_span_words_call_for_the_guard(self, tokenizer, words):
        assert words.additive == ("superwords" not in tokenizer.name)

    def test_words_without_a_guard_give_too_few_tokens(self, superwords):
        words = Words.of(superwords)
        unguarded = Words(words.items, additive=True)
        made = list(dataset(superwords, unguarded, inputs=(200, 200)).prompts(20))
        assert all(count < 200 for count in superwords.count([prompt.text for prompt in made]))

    def test_fitted_takes_as_many_words_as_it_needs(self, superwords):
        words = list(Words.of(superwords).items)
        rows, wanted = [words, words[::-1], words[5:]], [1, 50, 120]
        assert superwords.count(fit_texts(rows, wanted, superwords)) == wanted

    def test_a_row_that_is_too_short_is_refused(self, superwords):
        with pytest.raises(BadInput, match="joins words into tokens"):
            fit_texts([["bala", "bale"]], [5], superwords)


class TestLengths:
    @pytest.mark.parametrize(
        ("mean", "ratio", "low", "high"),
        [
            (1000, 0.0, 1000, 1000),
            (1000, 0.5, 500, 1500),
            (10, 0.25, 7, 13),
            (3, 0.5, 1, 5),
            (1, 0.0, 1, 1),
        ],
    )
    def test_a_ratio_reaches_down_and_up_from_the_length(self, mean, ratio, low, high):
        assert Lengths.around("--random-input-len", mean, ratio) == Lengths(low, high)

    def test_all_lengths_of_a_range_come_up_about_equally_often(self):
        counts = Counter(
            prompt.input_tokens
            for prompt in prompts(5000, random_input_len=10, random_range_ratio="0.5")
        )
        assert sorted(counts) == list(range(5, 16))
        assert max(counts.values()) < 1.3 * min(counts.values())

    def test_inputs_and_outputs_can_have_ratios_of_their_own(self):
        made = prompts(
            200,
            random_input_len=100,
            random_output_len=10,
            random_range_ratio='{"input": 0, "output": 0.5}',
        )
        assert {prompt.input_tokens for prompt in made} == {100}
        assert {prompt.output_tokens for prompt in made} == set(range(5, 16))

    def test_input_and_output_lengths_are_drawn_independently(self):
        made = prompts(1000, random_input_len=100, random_output_len=100, random_range_ratio="0.5")
        both = [(prompt.input_tokens - 100) * (prompt.output_tokens - 100) for prompt in made]
        assert abs(sum(both) / len(both)) < 100  # of a variance of 850


class TestSeeds:
    def test_the_same_settings_give_the_same_prompts(self):
        assert prompts(random_range_ratio="0.3") == prompts(random_range_ratio="0.3")

    def test_prompts_are_the_same_in_every_release(self):
        texts = [prompt.text for prompt in prompts(3, random_input_len=4, random_prefix_len=2)]
        assert texts == PINNED

    def test_the_order_seed_changes_the_order_only(self):
        one, other = (
            prompts(random_range_ratio="0.3"),
            prompts(random_range_ratio="0.3", seed_order=1),
        )
        assert one != other
        assert {*one} == {*other}

    def test_the_prompt_seed_changes_the_prompts_only(self):
        one, other = prompts(), prompts(seed_prompts=1)
        assert not {prompt.text for prompt in one} & {prompt.text for prompt in other}
        assert rows(one) == rows(other)

    def test_the_seed_stands_for_both_unless_they_are_given(self):
        assert prompts(seed=7) == prompts(seed=3, seed_prompts=7, seed_order=7)
        assert prompts(seed=7) != prompts(seed=3)

    def test_arrivals_seed_does_not_change_the_prompts(self):
        assert prompts(seed_arrivals=9) == prompts()

    def test_fewer_prompts_are_the_first_rows_of_more(self):
        fewer, more = prompts(50, random_range_ratio="0.5"), prompts(3000, random_range_ratio="0.5")
        assert {*fewer} == {prompt for prompt in more if row(prompt) < 50}

    def test_longer_prompt_begins_like_the_shorter_one(self):
        short, long = prompts(random_input_len=10), prompts(random_input_len=2001)
        assert all(
            one.text == " ".join(other.text.split()[:10])
            for one, other in zip(short, long, strict=True)
        )

    def test_prompts_are_distinct(self):
        assert len({prompt.text for prompt in prompts(20000, random_input_len=4)}) == 20000

    def test_prompts_share_no_beginning(self):
        firsts = Counter(prompt.text.split()[0] for prompt in prompts(4096, random_input_len=4))
        assert max(firsts.values()) < 12  # 1 expected of each of the 4096 words


class TestSource:
    def test_prompts_are_made_as_they_are_asked_for(self):
        stream = datasets.create(options(random_input_len=32000)).prompts(10**6)
        assert next(stream).input_tokens == 32000

    def test_phrases_are_drawn_only_when_prompts_are_asked_for(self):
        """A data set is made anew once the server's template is known, and what it draws from
        costs 0.15 s.
        """
        made = datasets.create(options())
        assert "phrases" not in vars(made.drawing)
        next(made.prompts(1))
        assert "phrases" in vars(made.drawing)

    def test_zero_prompts_can_be_asked_for(self):
        assert prompts(0) == []

    def test_provenance_names_rule_seeds_lengths_and_tokenizer(self):
        made = datasets.create(
            options(seed=5, random_input_len=10, random_range_ratio="0.5", random_prefix_len=3)
        )
        said = made.provenance()
        assert said["rule"] == "exact words"
        assert (said["seed_prompts"], said["seed_order"]) == (5, 5)
        assert (said["prefix_tokens"], said["input_tokens"]) == (3, [5, 15])
        assert said["tokenizer_sha256"] == load(str(SIMULATOR)).sha256


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"random_input_len": 0},
                "--random-input-len: 0 is out of range; give 1 token or more",
            ),
            (
                {"random_output_len": 0},
                "--random-output-len: 0 is out of range; give 1 token or more",
            ),
            (
                {"random_prefix_len": -1},
                "--random-prefix-len: -1 is out of range; give 0 tokens or more",
            ),
            (
                {"random_input_len": 1, "random_range_ratio": "0.5"},
                "--random-range-ratio: 0.5 of --random-input-len 1 leaves no token; lower it, or "
                "give more tokens",
            ),
            *(
                (
                    {"random_range_ratio": ratio},
                    f"--random-range-ratio: {ratio} is not in range; {remedy}",
                )
                for remedy in ['give a number from 0 to below 1, or {"input": r, "output": r}']
                for ratio in [
                    "1",
                    "-0.1",
                    "nan",
                    "inf",
                    '{"input": 0.1}',
                    '{"input": 0, "output": 0, "other": 0}',
                ]
            ),
        ],
    )
    def test_is_refused_in_one_line_with_its_remedy(self, changes, message):
        with pytest.raises(BadInput) as refused:
            datasets.create(options(**changes))
        assert str(refused.value) == message

    @pytest.mark.parametrize(
        "ratio", ["wide", "[0.1, 0.2]", '{"input": "wide"}', '{"input": null}', "{"]
    )
    def test_invalid_range_ratio_is_refused(self, ratio):
        with pytest.raises(
            BadInput, match=r"--random-range-ratio: invalid ratio .*; give a number"
        ):
            datasets.create(options(random_range_ratio=ratio))

    def test_a_length_that_the_special_tokens_fill_is_refused(self, tmp_path):
        path = trained.wordpiece(tmp_path)
        with pytest.raises(BadInput) as refused:
            datasets.create(RunSettings(tokenizer=str(path), random_input_len=2))
        assert (
            str(refused.value)
            == "--random-input-len: 2 leaves no token after 2 special tokens; give at least 3"
        )

    def test_a_tokenizer_with_too_few_words_is_refused(self, tmp_path):
        path = trained.word_level(tmp_path, size=100)
        with pytest.raises(
            BadInput, match=r"--tokenizer: .* words of one token, and random prompts need 256; use"
        ):
            datasets.create(RunSettings(tokenizer=str(path)))


def row(prompt):
    return int(prompt.source.rsplit("/", 1)[1])


def rows(made):
    return [row(prompt) for prompt in made]
