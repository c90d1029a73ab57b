"""Lengths are a number, a range, a distribution or a list; other text is refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import datasets
from loadgen.workload.datasets.lengths import Lengths
from tests.workload.test_random_words import SIMULATOR

FLAG = "--random-input-len"
LAWS = [
    "1024",
    "900:1100",
    "normal:1000:200",
    "lognormal:1000:800",
    "normal:100:50:90:120",
    "30,10,20",
]


def drawn(text, count=1000, seed=0, **options):
    return Lengths.parse(FLAG, text, **options).draw(np.random.default_rng(seed), count)


def refusal(given, **options):
    with pytest.raises(BadInput) as refused:
        Lengths.parse(FLAG, given, **options)
    assert "\n" not in str(refused.value)
    return str(refused.value)


class TestForms:
    @pytest.mark.parametrize("given", [1024, "1024", " 1024 ", "+1024"])
    def test_a_number_is_every_length(self, given):
        assert set(drawn(given)) == {1024}

    def test_range_is_uniform_with_both_ends(self):
        values, counts = np.unique(drawn("5:9", 10_000), return_counts=True)
        assert values.tolist() == [5, 6, 7, 8, 9]
        assert max(counts) < 1.1 * min(counts)

    @pytest.mark.parametrize(
        ("law", "mean", "stdev"), [("normal", 1000, 150), ("lognormal", 1000, 600)]
    )
    def test_mean_and_deviation_are_those_of_the_lengths_themselves(self, law, mean, stdev):
        found = drawn(f"{law}:{mean}:{stdev}", 200_000)
        assert found.mean() == pytest.approx(mean, rel=0.01)
        assert found.std() == pytest.approx(stdev, rel=0.02)

    def test_a_lognormal_length_has_its_median_below_its_mean(self):
        found = drawn("lognormal:1000:1000", 100_000)
        # Exp(mu) of mean and deviation 1000.
        assert np.median(found) == pytest.approx(1000 / math.sqrt(2), rel=0.02)

    @pytest.mark.parametrize("law", ["normal", "lognormal"])
    def test_lengths_outside_the_bounds_are_drawn_again(self, law):
        found = drawn(f"{law}:100:50:80:130", 100_000)
        assert (found.min(), found.max()) == (80, 130)
        assert np.mean(found == 80) < 0.04
        assert np.mean(found == 130) < 0.04

    def test_lengths_outside_the_bounds_are_moved_to_them_if_clipped(self):
        found = drawn("clipped:100:50:80:100", 100_000)
        assert (found.min(), found.max()) == (80, 100)
        assert np.mean(found == 100) == pytest.approx(0.5, abs=0.01)
        assert np.mean(found == 80) == pytest.approx(0.345, abs=0.01)

    def test_clipped_lengths_have_both_bounds(self):
        assert "write clipped:MEAN:STDEV:MIN:MAX" in refusal("clipped:100:50")

    def test_a_range_of_answers_begins_at_one_token_at_least(self):
        assert set(drawn("1", ratio=0.8, clamped=True)) == {1, 2}
        assert refusal("1", ratio=0.8).startswith(
            f"--random-range-ratio: 0.8 of {FLAG} 1 leaves no token"
        )

    def test_without_bounds_a_normal_length_is_at_least_one_token(self):
        assert drawn("normal:3:10", 10_000).min() == 1

    def test_a_list_is_taken_in_its_order_and_then_again(self):
        assert drawn("30,10,20", 7).tolist() == [30, 10, 20, 30, 10, 20, 30]

    def test_a_file_holds_a_list_over_as_many_lines_as_it_likes(self, tmp_path):
        (tmp_path / "lengths").write_text("30 10\n\n20\t5\n")
        assert drawn(f"@{tmp_path}/lengths", 5).tolist() == [30, 10, 20, 5, 30]

    @pytest.mark.parametrize(
        "text", ["1", "131072", "131071:131072", "lognormal:8000:16000:1:131072"]
    )
    def test_lengths_reach_from_one_to_128k(self, text):
        found = drawn(text)
        assert found.min() >= 1
        assert found.max() <= 131072

    @pytest.mark.parametrize("text", LAWS)
    def test_the_first_do_not_depend_on_how_many_follow(self, text):
        assert drawn(text, 100).tolist() == drawn(text, 5000)[:100].tolist()

    @pytest.mark.parametrize("text", LAWS[1:5])
    def test_another_seed_draws_others(self, text):
        assert drawn(text).tolist() != drawn(text, seed=1).tolist()

    def test_zero_lengths_can_be_drawn(self):
        assert [drawn(text, 0).tolist() for text in LAWS] == [[]] * len(LAWS)


class TestShorter:
    @pytest.mark.parametrize("text", LAWS)
    @given(by=st.integers(0, 9))
    def test_each_length_is_shorter_by_what_is_taken_off(self, text, by):
        shorter = (
            Lengths.parse(FLAG, text)
            .shorter(FLAG, by, "the rest")
            .draw(np.random.default_rng(0), 200)
        )
        assert shorter.tolist() == (drawn(text, 200) - by).tolist()

    def test_a_distribution_begins_where_one_token_is_left(self):
        lengths = Lengths.parse(FLAG, "normal:20:10").shorter(FLAG, 8, "8 of the chat template")
        assert lengths.draw(np.random.default_rng(0), 10_000).min() == 1

    def test_its_own_lower_bound_stays_where_it_was(self):
        lengths = Lengths.parse(FLAG, "normal:20:10:15:30").shorter(
            FLAG, 8, "8 of the chat template"
        )
        assert lengths.draw(np.random.default_rng(0), 10_000).min() == 7

    @pytest.mark.parametrize(
        ("text", "least"), [("8", 8), ("5:100", 5), ("100,7", 7), ("normal:20:10:6:30", 6)]
    )
    def test_lengths_below_one_token_are_refused(self, text, least):
        with pytest.raises(BadInput) as refused:
            Lengths.parse(FLAG, text).shorter(FLAG, 8, "8 of the chat template")
        expected = f"{FLAG}: {least} leaves no token after 8 of the chat template; give at least 9"
        assert str(refused.value) == expected

    def test_special_tokens_are_taken_off_when_they_are_read(self):
        assert drawn("10:12", less=2).max() == 10
        assert (
            refusal("2:9", less=2)
            == f"{FLAG}: 2 leaves no token after 2 special tokens; give at least 3"
        )


class TestPrompts:
    """As the random data set has them."""

    def prompts(self, count=50, **changes):
        return list(
            datasets.create(RunSettings(tokenizer=str(SIMULATOR), **changes)).prompts(count)
        )

    @pytest.mark.integration
    def test_listed_lengths_follow_the_sending_order(self):
        made = self.prompts(5, random_input_len="30,10,20", random_output_len="3,1,2", seed_order=4)
        assert [prompt.input_tokens for prompt in made] == [30, 10, 20, 30, 10]
        assert [prompt.output_tokens for prompt in made] == [3, 1, 2, 3, 1]

    @pytest.mark.integration
    def test_drawn_lengths_stay_with_their_prompts_in_another_order(self):
        one, other = (self.prompts(random_input_len="10:90", seed_order=seed) for seed in (0, 1))
        assert {*one} == {*other}

    @pytest.mark.integration
    def test_lengths_that_differ_widely_are_all_exact(self):
        made = self.prompts(300, random_input_len="lognormal:2000:20000:1:131072")
        sizes = datasets.create(RunSettings(tokenizer=str(SIMULATOR))).tokenizer.count(
            [prompt.text for prompt in made]
        )
        assert sizes == [prompt.input_tokens for prompt in made]
        assert max(sizes) > 20 * np.median(sizes)

    def test_the_rule_stands_in_the_provenance(self):
        made = datasets.create(
            RunSettings(
                tokenizer=str(SIMULATOR), random_input_len="normal:500:50", random_output_len="7,8"
            )
        ).provenance()
        assert made["input_lengths"] == "normal:500:50"
        assert made["output_lengths"].startswith("2 listed, sha256 ")


class TestBadInput:
    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ("", "invalid length ''"),
            ("many", "invalid length 'many'"),
            ("1.5", "invalid length '1.5'"),
            ("1e3", "invalid length '1e3'"),
            (1.5, "invalid length 1.5"),
            (True, "invalid length True"),
            ("9" * 30, f"invalid length '{'9' * 30}'"),
            ("0", "0 leaves no token"),
            ("-5", "-5 leaves no token"),
            ("10000001", "10000001 tokens are more than any model supports"),
            ("0:5", "0 leaves no token"),
            ("9:5", "invalid range of lengths '9:5'"),
            ("1:2:3", "invalid range of lengths '1:2:3'"),
            ("5:", "number 2 of 2 is missing"),
            (":5", "number 1 of 2 is missing"),
            ("normal:100", "invalid distribution of lengths 'normal:100'"),
            ("normal:100:x", "invalid distribution of lengths 'normal:100:x'"),
            ("normal:100:10:5", "invalid distribution of lengths 'normal:100:10:5'"),
            ("normal:100:10:5:6:7", "invalid distribution of lengths 'normal:100:10:5:6:7'"),
            ("normal:100:0", "'normal:100:0' has a mean or deviation out of range"),
            ("normal:nan:1", "'normal:nan:1' has a mean or deviation out of range"),
            ("lognormal:100:inf", "'lognormal:100:inf' has a mean or deviation out of range"),
            ("lognormal:0.5:1", "'lognormal:0.5:1' has a mean or deviation out of range"),
            ("normal:100:10:120:90", "'normal:100:10:120:90' has no length from 120 to 90"),
            ("normal:100:10:500:600", "normal:100:10 draws almost no length from 500 to 600"),
            ("lognormal:100:10:500:600", "lognormal:100:10 draws almost no length from 500 to 600"),
            ("1,2,", "number 3 of 3 is missing"),
            ("10,,20", "number 2 of 3 is missing"),
            ("10, ,20", "number 2 of 3 is missing"),
            (",", "number 1 of 2 is missing"),
            ("normal:100:10:5:", "number 2 of 2 is missing"),
            ("1,0", "0 leaves no token"),
            ("@/nowhere/lengths", "/nowhere/lengths: No such file"),
        ],
    )
    def test_is_refused_in_one_line_with_its_remedy(self, given, problem):
        line = refusal(given)
        assert line.startswith(f"{FLAG}: {problem}")
        assert "; " in line

    def test_a_ratio_is_for_numbers_alone(self):
        expected = (
            "--random-range-ratio: 0.5 applies only to a single number, and --random-input-len is "
            "5:9; "
            'write the range itself, or {"input": r, "output": r} with 0 for --random-input-len'
        )
        assert refusal("5:9", ratio=0.5) == expected
