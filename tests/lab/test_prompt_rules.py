"""Rules build prompts as other tools do; each is held to a plain form of that tool's procedure."""

import sys
from typing import get_args

import numpy as np
import pytest

from loadgen.config.data import FULL_LENGTH, Rule
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.tools.prompt_rules import random_text
from loadgen.lab.tools.prompt_rules.random_text import Guidellm05Random
from loadgen.util import packages
from loadgen.workload import datasets
from loadgen.workload.datasets import rules
from loadgen.workload.target import Target
from loadgen.workload.tokenizer.tokenizer import load
from tests.helpers import trained_tokenizers as trained
from tests.helpers.source import ROOT

pytestmark = pytest.mark.integration  # most of its time goes to tokenizers

SIMULATOR = ROOT / "engines" / "sim" / "tokenizer.json"

RULES = [tuple(entry.name.split(".", 1)) for entry in packages.installed(rules.GROUP)]


def prompts(count, **changes):
    return list(
        datasets.create(RunSettings(**{"tokenizer": str(SIMULATOR), **changes})).prompts(count)
    )


def facts(made):
    return [(prompt.text, prompt.input_tokens, prompt.output_tokens) for prompt in made]


class TestRegistry:
    def test_every_rule_that_can_be_asked_for_is_one_of_some_kind(self):
        assert {*get_args(Rule)} == {rule for _, rule in RULES}

    @pytest.mark.parametrize(("kind", "rule"), RULES)
    def test_every_rule_can_be_had(self, kind, rule):
        assert callable(rules.find(kind, rule).from_settings)

    def test_a_kind_without_the_rule_lists_those_it_has(self):
        with pytest.raises(BadInput) as refused:
            prompts(1, dataset_rule="benchmark-runner")
        assert str(refused.value) == (
            "--dataset-rule: unknown rule 'benchmark-runner' for random; "
            "choose one of: guidellm-0.5, vllm-0.11, vllm-0.9; or leave it out"
        )

    def test_a_kind_of_another_package_has_its_own_rule_alone(self):
        with pytest.raises(
            BadInput,
            match=r"--dataset-rule: unknown rule 'vllm-0.9' for theirs; leave it out: the data "
            r"set has no rules",
        ):
            rules.find("theirs", "vllm-0.9")

    def test_a_rule_that_is_none_is_refused_with_all_there_are(self):
        with pytest.raises(
            BadInput,
            match=r"--dataset-rule: unknown value 'vllm'; choose from vllm-0.11, vllm-0.9, gui",
        ):
            RunSettings(dataset_rule="vllm").checked()

    def test_an_unknown_kind_is_refused_before_its_rule(self):
        with pytest.raises(BadInput, match="unknown data set 'randon'"):
            prompts(1, dataset_name="randon", dataset_rule="vllm-0.11")

    @pytest.mark.parametrize("rule", get_args(Rule))
    def test_guidellm_and_what_wraps_it_let_no_answer_end_early(self, rule):
        settings = RunSettings(dataset_rule=rule).implied()
        assert (
            settings.ignore_eos
            == (rule in FULL_LENGTH)
            == (rule in ("guidellm-0.5", "benchmark-runner"))
        )
        assert Target.from_settings(settings, "m").fields == (
            {"ignore_eos": True} if settings.ignore_eos else {}
        )

    def test_rule_keeps_explicit_ignore_eos(self):
        assert RunSettings(dataset_rule="vllm-0.11", ignore_eos=True).implied().ignore_eos
        settings = RunSettings(dataset_name="sharegpt")
        assert settings.implied() == settings.replace(ignore_eos=False)

    def test_random_prompts_imply_ignore_eos(self):
        assert RunSettings().implied().ignore_eos
        assert not RunSettings(ignore_eos=False).implied().ignore_eos
        assert not RunSettings(dataset_rule="vllm-0.11").implied().ignore_eos


# -- consecutive ids


def consecutive_prompts(tokenizer, draw, count, *, prefix, cut_to, counted):
    """Decode, encode, cut, decode, one prompt after the other; `draw` gives prefix, inputs,
    outputs and offsets.
    """
    shared, inputs, outputs, offsets = draw
    made = []
    for row in range(count):
        ids = shared + [
            (int(offsets[row]) + row + at) % tokenizer.own_size for at in range(int(inputs[row]))
        ]
        (encoded,) = tokenizer.encode_batch(tokenizer.decode_batch([ids]))
        left = encoded[: cut_to(prefix, int(inputs[row]))]
        made.append(
            (
                tokenizer.decode_batch([left])[0],
                counted(prefix, int(inputs[row]), len(left)),
                int(outputs[row]),
            )
        )
    return made


def expected_0_11(tokenizer, count, length, output, *, prefix=0, ratio=0.0, seed=0):
    rng, own = np.random.default_rng(seed), length - tokenizer.special_tokens
    inputs = rng.integers(
        int(np.floor(own * (1 - ratio))), int(np.ceil(own * (1 + ratio))) + 1, size=count
    )
    low = max(1, int(np.floor(output * (1 - ratio))))
    outputs = rng.integers(low, int(np.ceil(output * (1 + ratio))) + 1, size=count)
    offsets = rng.integers(0, tokenizer.own_size, size=count)
    shared = rng.integers(0, tokenizer.own_size, size=prefix).tolist() if prefix else []
    return consecutive_prompts(
        tokenizer,
        (shared, inputs, outputs, offsets),
        count,
        prefix=prefix,
        cut_to=lambda prefix, own: prefix + own,
        counted=lambda prefix, own, left: left,
    )


def expected_0_9(tokenizer, count, length, output, *, prefix=0, ratio=0.0, seed=0):
    np.random.seed(seed)
    own = length - tokenizer.special_tokens
    shared = np.random.randint(0, tokenizer.own_size, size=prefix).tolist() if prefix else []
    inputs = np.random.randint(int(own * (1 - ratio)), int(own * (1 + ratio)) + 1, size=count)
    outputs = np.random.randint(
        int(output * (1 - ratio)), int(output * (1 + ratio)) + 1, size=count
    )
    offsets = np.random.randint(0, tokenizer.own_size, size=count)
    return consecutive_prompts(
        tokenizer,
        (shared, inputs, outputs, offsets),
        count,
        prefix=prefix,
        cut_to=lambda prefix, own: own,
        counted=lambda prefix, own, left: prefix + own,
    )


EXPECTED = {"vllm-0.11": expected_0_11, "vllm-0.9": expected_0_9}


@pytest.fixture(
    scope="module",
    params=[trained.wordpiece, trained.superwords, None],
    ids=lambda make: make.__name__ if make else "sim",
)
def path(request, tmp_path_factory):
    """Tokenizers: one that puts special tokens around a text, one that merges neighbours, one
    that is plain.
    """
    return request.param(tmp_path_factory.mktemp("tokenizers")) if request.param else SIMULATOR


@pytest.mark.parametrize("rule", EXPECTED)
class TestConsecutiveIds:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "asked", [{}, {"prefix": 30}, {"ratio": 0.3}, {"prefix": 5, "ratio": 0.5, "seed": 7}]
    )
    def test_prompts_are_the_tools(self, path, rule, asked, monkeypatch):
        monkeypatch.setattr(random_text, "BLOCK_TOKENS", 500)
        fields = {"prefix": "random_prefix_len", "ratio": "random_range_ratio", "seed": "seed"}
        changes = {
            fields[name]: str(value) if name == "ratio" else value for name, value in asked.items()
        }
        made = prompts(
            40,
            tokenizer=str(path),
            dataset_rule=rule,
            random_input_len=50,
            random_output_len=9,
            **changes,
        )
        assert facts(made) == EXPECTED[rule](load(str(path)), 40, 50, 9, **asked)

    def test_ratios_of_inputs_and_outputs_may_differ(self, rule):
        made = prompts(
            50,
            dataset_rule=rule,
            random_input_len=50,
            random_range_ratio='{"input": 0, "output": 0.9}',
        )
        assert len({prompt.input_tokens for prompt in made if prompt.input_tokens == 50}) == 1
        assert len({prompt.output_tokens for prompt in made}) > 10

    def test_the_seed_of_prompts_draws_all(self, rule):
        one, other = (prompts(5, dataset_rule=rule, seed_order=order) for order in (1, 2))
        assert facts(one) == facts(other)
        assert facts(one) != facts(prompts(5, dataset_rule=rule, seed_prompts=1))

    def test_provenance_names_the_rule(self, rule):
        said = datasets.create(
            RunSettings(
                tokenizer=str(SIMULATOR), dataset_rule=rule, random_range_ratio="0.5", seed=3
            )
        ).provenance()
        assert (said["name"], said["rule"], said["seed_prompts"]) == ("random", rule, 3)
        assert (said["input_tokens"], said["output_tokens"]) == ([512, 1536], [64, 192])

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (
                {"random_input_len": 2},
                "--random-input-len: 2 leaves no token after 2 special tokens; give at least 3",
            ),
            (
                {"random_input_len": 3, "random_range_ratio": "0.5"},
                "--random-range-ratio: 0.5 of --random-input-len 3 leaves no token after 2 special "
                "tokens; lower it, or give more tokens",
            ),
            (
                {"random_input_len": "9:11"},
                "--random-input-len: 9:11 is not a single number, as RULE needs; write a number "
                "of tokens",
            ),
            (
                {"random_output_len": "9:11"},
                "--random-output-len: 9:11 is not a single number, as RULE needs; write a number "
                "of tokens",
            ),
            ({"random_output_len": "0"}, "--random-output-len: 0 leaves no token; give at least 1"),
        ],
    )
    def test_settings_that_leave_no_token_are_refused(self, tmp_path_factory, rule, changes, said):
        path = trained.wordpiece(tmp_path_factory.mktemp("tokenizer"))
        with pytest.raises(BadInput) as refused:
            prompts(1, tokenizer=str(path), dataset_rule=rule, **changes)
        assert str(refused.value) == said.replace("RULE", rule)


def test_merged_neighbours_shorten_a_prompt(tmp_path):
    # Made by hand: which neighbours merge does not depend on a source.
    path = str(trained.superwords(tmp_path))
    for rule, honest in (("vllm-0.11", True), ("vllm-0.9", False)):
        made = prompts(300, tokenizer=path, dataset_rule=rule, random_input_len=200)
        assert min(load(path).count([prompt.text for prompt in made])) < 200
        assert ({prompt.input_tokens for prompt in made} == {200}) == (not honest)


@pytest.mark.parametrize(("rule", "longer"), [("guidellm-0.5", True), ("vllm-0.11", False)])
def test_prompts_far_from_the_requested_length_are_warned_of(rule, longer, caplog):
    if rule == "guidellm-0.5":
        pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
    made = prompts(30, dataset_rule=rule, random_input_len=128)
    mean = sum(prompt.input_tokens for prompt in made) / len(made)
    assert (mean > 1.1 * 128, mean < 0.9 * 128) == (longer, not longer)
    (warning,) = caplog.messages
    assert warning.startswith(
        f"prompts have {mean:.1f} tokens on average where 128 were requested: the tokenizer "
    )


def test_prompts_of_nearly_the_requested_length_are_not_warned_of(tmp_path, caplog):
    path = str(trained.superwords(tmp_path))
    made = prompts(300, tokenizer=path, dataset_rule="vllm-0.11", random_input_len=200)
    assert sum(prompt.input_tokens for prompt in made) < 300 * 200
    assert caplog.messages == []


def test_answers_of_no_token_are_the_older_rules_alone():
    asked = {"random_output_len": 4, "random_range_ratio": '{"input": 0, "output": 0.9}'}
    assert (
        min(prompt.output_tokens for prompt in prompts(200, dataset_rule="vllm-0.11", **asked)) == 1
    )
    assert (
        min(prompt.output_tokens for prompt in prompts(200, dataset_rule="vllm-0.9", **asked)) == 0
    )


def test_the_old_generator_takes_32_bits():
    with pytest.raises(
        BadInput, match=r"--seed: 4294967296 is out of range for vllm-0.9; give less than 2"
    ):
        prompts(1, dataset_rule="vllm-0.9", seed=1 << 32)


# -- guidellm


class TestGuidellm:
    RULE = "guidellm-0.5"

    @pytest.mark.parametrize("seed", [0, 42])
    def test_prompts_are_the_tools(self, path, seed):
        module = pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
        faker, tokenizer = module.Faker(), load(str(path))
        faker.seed_instance(seed)
        expected = []
        for row in range(20):
            text = f"1 {row} " + faker.text(max_nb_chars=int(60 * 5 * 1.5))
            (ids,) = tokenizer.encode_batch([text], special=True)
            (left,) = tokenizer.decode_batch([ids[:60]], special=False)
            expected.append((left, *tokenizer.count([left], special=True), 9))
        asked = {"random_input_len": 60, "random_output_len": 9}
        assert (
            facts(prompts(20, tokenizer=str(path), dataset_rule=self.RULE, seed=seed, **asked))
            == expected
        )

    def test_a_text_that_is_too_short_is_drawn_again_and_longer(self):
        class TenLetters:
            """One token for every ten letters: more than the rule reckons with."""

            def encode_batch(self, texts, *, special):
                return [[text[at : at + 10] for at in range(0, len(text), 10)] for text in texts]

            def decode_batch(self, rows, *, special):
                return ["".join(row) for row in rows]

            def count(self, texts, *, special):
                return [len(row) for row in self.encode_batch(texts, special=special)]

        pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
        made = list(Guidellm05Random(TenLetters(), 100, 1, 0).prompts(3))
        assert [prompt.input_tokens for prompt in made] == [100] * 3
        assert [prompt.text[:4] for prompt in made] == ["1 0 ", "1 1 ", "1 2 "]

    def test_fewer_prompts_are_the_first_of_more(self):
        pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
        asked = {"dataset_rule": self.RULE, "random_input_len": 30}
        assert facts(prompts(3, **asked)) == facts(prompts(9, **asked))[:3]

    def test_without_faker_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "faker", None)
        with pytest.raises(BadInput) as refused:
            prompts(1, dataset_rule=self.RULE)
        assert str(refused.value) == (
            "--dataset-rule: making texts as guidellm-0.5 needs the package faker; pip install "
            "faker"
        )

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            (
                {"random_prefix_len": 5},
                "--random-prefix-len: guidellm-0.5 does not support a prefix; leave it out",
            ),
            (
                {"random_range_ratio": "0.5"},
                "--random-range-ratio: guidellm-0.5 does not support ranges; leave it out",
            ),
            (
                {"random_input_len": "9:11"},
                "--random-input-len: 9:11 is not a single number, as guidellm-0.5 needs",
            ),
        ],
    )
    def test_settings_the_tool_does_not_support_are_refused(self, changes, said):
        pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
        with pytest.raises(BadInput, match=said):
            prompts(1, dataset_rule=self.RULE, **changes)

    def test_provenance_names_the_rule_and_fakers_version(self):
        faker = pytest.importorskip("faker", reason="random prompts by guidellm's rule need faker")
        said = datasets.create(
            RunSettings(tokenizer=str(SIMULATOR), dataset_rule=self.RULE, seed=3)
        ).provenance()
        assert (said["rule"], said["seed_prompts"], said["faker"]) == (self.RULE, 3, faker.VERSION)
