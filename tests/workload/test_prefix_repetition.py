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
    # The last word may be a token with what follows.
    shared = 39 if "superwords" in tokenizer.name else 40
    assert sorted(Counter((*own[:shared],) for own in ids).values()) == [10, 10, 10]
    assert len({(*own[:44],) for own in ids}) == 30


def test_prefixes_begin_equally_many_prompts_or_one_fewer():
    assert (
        sorted(Counter(prompt.text.split()[0] for prompt in prompts(103)).values())
        == [10] * 7 + [11] * 3
    )


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
    assert not {p.text.split()[0] for p in one} & {
        p.text.split()[0] for p in prompts(seed_prompts=1)
    }


def test_special_tokens_take_their_part_of_the_suffix(tmp_path):
    path = trained.wordpiece(tmp_path)
    (prompt,) = prompts(1, path, prefix_len=10, suffix_len=5)
    assert (prompt.input_tokens, len(prompt.text.split())) == (15, 13)
    with pytest.raises(BadInput) as refused:
        prompts(1, path, suffix_len=2)
    message = (
        "--prefix-repetition-suffix-len: 2 leaves no token after 2 special tokens; give at least 3"
    )
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("prefix_len", -1, "-1 is out of range; give 0 tokens or more"),
        ("suffix_len", 0, "0 is out of range; give 1 token or more"),
        (
            "suffix_len",
            "9:2",
            "invalid range of lengths '9:2'; write MIN:MAX, for example 900:1100",
        ),
        ("output_len", 0, "0 is out of range; give 1 token or more"),
        ("num_prefixes", 0, "0 is out of range; give 1 or more"),
    ],
)
def test_lengths_that_are_none_are_refused(name, value, says):
    with pytest.raises(BadInput) as refused:
        prompts(1, **{name: value})
    assert str(refused.value) == f"--prefix-repetition-{name.replace('_', '-')}: {says}"


def test_provenance_names_prefixes_and_lengths():
    said = datasets.create(options(num_prefixes=4)).provenance()
    assert (said["name"], said["prefix_tokens"], said["prefix_choice"]) == (
        "prefix_repetition",
        0,
        "in turn",
    )
    assert said["prefixes"] == [{"count": 4, "tokens": 256, "weight": 1}]
    assert (said["input_tokens"], said["output_tokens"], said["words"]) == (
        [256, 256],
        [128, 128],
        4096,
    )


class TestUnequalGroups:
    """Prefixes that are drawn by Zipf's law, or by weights; a prefix of all prompts; sessions."""

    def groups(self, made):
        """How many prompts begin with each prefix, by the number of the prefix."""
        return Counter(int(prompt.source.split("/")[2]) for prompt in made)

    def test_group_k_has_a_share_of_zipfs_law(self):
        count, alpha = 4000, 1.2
        found = self.groups(
            prompts(count, num_prefixes=8, prefix_len=5, suffix_len=3, prefix_zipf=alpha)
        )
        weights = [rank**-alpha for rank in range(1, 9)]
        expected = [count * weight / sum(weights) for weight in weights]
        squared = sum((found[number] - mean) ** 2 / mean for number, mean in enumerate(expected))
        assert squared < 24.3  # chi-square, 7 degrees of freedom: 1 seed in 1000 is beyond

    def test_group_of_a_row_does_not_depend_on_their_number(self):
        few, many = (prompts(n, num_prefixes=8, prefix_zipf=1.0) for n in (50, 200))
        rows = {prompt.source for prompt in many}
        assert {prompt.source for prompt in few} <= rows

    def test_buckets_have_lengths_and_weights(self):
        made = prompts(2000, prefix_buckets="3x20:75,1x50-60:25", suffix_len=4)
        assert {prompt.input_tokens for prompt in made if prompt.input_tokens < 50} == {24}
        (longest,) = {prompt.input_tokens for prompt in made if prompt.input_tokens >= 50}
        assert 54 <= longest <= 64
        assert sum(prompt.input_tokens == longest for prompt in made) == pytest.approx(500, abs=80)

    def test_a_bucket_without_weight_takes_turns(self):
        made = prompts(40, prefix_buckets="4x20-90", suffix_len=4)
        assert [*self.groups(made).values()] == [10] * 4
        assert len({prompt.input_tokens for prompt in made}) > 1

    def test_a_prefix_of_all_prompts_precedes_that_of_the_group(self):
        tokenizer = load(str(SIMULATOR))
        made = prompts(30, random_prefix_len=12, prefix_len=8, suffix_len=5, num_prefixes=3)
        texts = [prompt.text.split() for prompt in made]
        assert len({(*words[:12],) for words in texts}) == 1
        assert sorted(Counter((*words[:20],) for words in texts).values()) == [10, 10, 10]
        assert len({(*words,) for words in texts}) == 30
        assert (
            tokenizer.count([prompt.text for prompt in made])
            == [25] * 30
            == [p.input_tokens for p in made]
        )

    def test_the_prefixes_to_warm_a_cache_are_whole(self):
        dataset = datasets.create(options(random_prefix_len=12, prefix_len=8, num_prefixes=3))
        prefixes = [prompt.text for prompt in dataset.prefix_prompts()]
        begins = {" ".join(prompt.text.split()[:20]) for prompt in dataset.prompts(30)}
        assert begins == {*prefixes}

    def test_unshuffled_prompts_are_sent_prefix_by_prefix(self):
        made = prompts(9, num_prefixes=3, disable_shuffle=True)
        assert [prompt.source.split("/")[2:] for prompt in made] == [
            *(["0", row] for row in ("0", "3", "6")),
            *(["1", row] for row in ("1", "4", "7")),
            *(["2", row] for row in ("2", "5", "8")),
        ]

    def test_lengths_of_suffixes_and_answers_may_be_drawn(self):
        made = prompts(200, prefix_len=10, suffix_len="20:30", output_len="5:9")
        assert {prompt.input_tokens for prompt in made} == {*range(30, 41)}
        assert {prompt.output_tokens for prompt in made} == {*range(5, 10)}

    def test_turns_make_sessions_whose_system_messages_are_the_prefixes(self):
        made = prompts(60, num_prefixes=3, turns="2", backend="openai-chat")
        assert [prompt.follows for prompt in made] == [False, True] * 30
        systems = [prompt.messages[0] for prompt in made if not prompt.follows]
        assert {message["role"] for message in systems} == {"system"}
        assert sorted(Counter(message["content"] for message in systems).values()) == [10, 10, 10]
        assert {prompt.source.split("/")[0] for prompt in made} == {"prefix_repetition"}

    def test_unshuffled_sessions_begin_prefix_by_prefix(self):
        made = prompts(12, num_prefixes=3, turns="2", disable_shuffle=True)
        assert [prompt.source.split("/")[2] for prompt in made if not prompt.follows] == list(
            "031425"
        )

    @pytest.mark.parametrize(
        ("changes", "says"),
        [
            ({"prefix_zipf": 0.0}, "--prefix-zipf: 0 is out of range"),
            ({"prefix_zipf": float("nan")}, "--prefix-zipf: nan is out of range"),
            ({"prefix_zipf": 1.0, "prefix_len": 0}, "--prefix-zipf: there are no prefixes to draw"),
            (
                {"prefix_zipf": 1.0, "prefix_buckets": "4x10:2"},
                "--prefix-zipf: excludes the weights",
            ),
            (
                {"prefix_buckets": "4x10", "num_prefixes": 3},
                "--prefix-buckets: cannot be combined with --prefix-rep",
            ),
            ({"prefix_buckets": "4x10-9"}, "--prefix-buckets: invalid buckets"),
            (
                {"prefix_buckets": "100000x9,1x9"},
                "--prefix-buckets: too many prefixes; give at most 100,000",
            ),
            (
                {"num_prefixes": 100_001},
                "--prefix-repetition-num-prefixes: too many prefixes; give at most 100,000",
            ),
        ],
    )
    def test_choices_that_exclude_each_other_are_refused(self, changes, says):
        with pytest.raises(BadInput) as refused:
            prompts(1, **changes)
        assert str(refused.value).startswith(says)


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
        made, counting = self.made(
            path, self.MEASURED, prefix_len=40, suffix_len=30, num_prefixes=3
        )
        texts = [prompt.text for prompt in made]
        assert counting.measure(texts) == [prompt.server_tokens for prompt in made] == [70] * 20
        assert load(str(path)).count(texts, special=True) == [
            prompt.input_tokens for prompt in made
        ]
        assert len({(*text.split()[:39],) for text in texts}) == 3

    def test_raw_lengths_keep_prompts_and_predict_counts(self):
        made, _ = self.made(
            SIMULATOR, self.CHAT, TemplateTokens(9, "told"), prefix_len=40, suffix_len=30
        )
        assert {(prompt.input_tokens, prompt.server_tokens) for prompt in made} == {(70, 79)}
        assert [prompt.text for prompt in made] == [
            p.text for p in prompts(20, prefix_len=40, suffix_len=30)
        ]

    def test_suffix_below_the_template_is_refused(self):
        with pytest.raises(BadInput) as refused:
            self.made(SIMULATOR, self.MEASURED, TemplateTokens(9, "told"), suffix_len=9)
        message = (
            "--prefix-repetition-suffix-len: 9 leaves no token after 9 of the chat "
            "template; give at least 10"
        )
        assert str(refused.value) == message

    def test_where_tokens_do_not_add_up_one_number_is_not_enough(self, tmp_path):
        with pytest.raises(BadInput, match=r"--input-len-counts: .* joins words into tokens"):
            self.made(trained.superwords(tmp_path), self.MEASURED, TemplateTokens(9, "told"))
