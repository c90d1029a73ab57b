"""A command line with --auto-tune becomes a search, with the range, the limits and the budget
that it names.
"""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadgen.errors import BadInput, Flags, spelled
from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.auto_tune import AutoTune
from loadgen.lab.gpustack.job import Job
from tests.helpers.gpustack_contract import DATA

TARGET = ("--target", "http://127.0.0.1:8000")
LENGTHS = ("--data", "prompt_tokens=1024,output_tokens=128")
SEARCHES = DATA / "searches.yaml"
NINE = [
    (f"--{prefix}-{statistic}-{metric}-ms", limit)
    for prefix in ("sla", "slo")
    for metric, name in (("ttft", "ttft"), ("tpot", "tpot"), ("latency", "e2el"))
    for statistic, limit in (
        ("avg", f"{name}_mean"),
        ("p95", f"{name}_p95"),
        ("p99", f"{name}_p99"),
    )
]


def search(*flags: str) -> AutoTune:
    job = Job.of(arguments.parse([*TARGET, *flags]))
    assert job.auto_tune is not None
    assert job.steps == ()
    return job.auto_tune


def refusal(argv: Sequence[str]) -> BadInput:
    with pytest.raises(BadInput) as refused, spelled(Flags(arguments.FLAG_NAMES)):
        Job.of(arguments.parse([*TARGET, *LENGTHS, *argv]))
    return refused.value


class TestRange:
    def test_of_a_rate(self) -> None:
        tuned = search(
            *LENGTHS, "--auto-tune", "--axis", "rate", "--lower-bound", "4.0", "--upper-bound", "64"
        )
        assert (tuned.axis, tuned.lower_bound, tuned.upper_bound) == ("rate", 4, 64)
        assert tuned.first == {"request_rate": 4}
        assert tuned.settings.burstiness == math.inf

    def test_of_a_concurrency(self) -> None:
        tuned = search(*LENGTHS, "--auto-tune", "--axis", "concurrency", "--lower-bound", "4.0")
        assert (type(tuned.lower_bound), type(tuned.upper_bound)) == (int, int)
        assert (tuned.axis, tuned.first) == ("concurrency", {"max_concurrency": 4})

    def test_and_budget_have_the_defaults_of_benchmark_runner(self) -> None:
        tuned = search(*LENGTHS, "--auto-tune")
        assert (tuned.axis, tuned.lower_bound, tuned.upper_bound) == ("rate", 4, 8192)
        assert (tuned.max_points, tuned.max_total_seconds) == (18, 5400)


class TestLimits:
    @pytest.mark.parametrize(
        ("flag", "limit"),
        [*NINE, ("--slo-avg-itl-ms", "tpot_mean"), ("--slo-p99-itl-ms", "tpot_p99")],
    )
    def test_each_flag_is_one(self, flag: str, limit: str) -> None:
        tuned = search(*LENGTHS, "--auto-tune", flag, "250.5")
        assert tuned.settings.slo == f"{limit}<=250.5ms,error_rate<0.05"

    def test_failures_are_limited_by_gpustacks_share_or_a_smaller_one(self) -> None:
        assert search(*LENGTHS, "--auto-tune").settings.slo == "error_rate<0.05"
        assert (
            search(*LENGTHS, "--auto-tune", "--max-error-rate", "0.5").settings.slo
            == "error_rate<0.05"
        )
        assert (
            search(*LENGTHS, "--auto-tune", "--max-error-rate", "0.02").settings.slo
            == "error_rate<0.02"
        )

    def test_latencies_are_those_of_the_summary(self) -> None:
        assert search(*LENGTHS, "--auto-tune").settings.latency_from == "sent"


class TestFiles:
    def test_points_are_numbered_in_their_order_and_runs_keep_their_records(self) -> None:
        tuned = search(*LENGTHS, "--auto-tune", "--output-dir", "/out", "--outputs", "7.dual_json")
        assert tuned.point(0) == Path("/out/7__p0.json")
        assert tuned.records(1) == Path("/out/7__run1.records.jsonl")

    def test_only_a_load_within_the_limits_has_a_rate(self) -> None:
        """GPUStack recommends the point with the most tokens per second, failures or not;
        without a rate it cannot.
        """
        rate, streams = (
            search(*LENGTHS, "--auto-tune", "--axis", axis) for axis in ("rate", "concurrency")
        )
        assert rate.strategy(62.5, met=True).to_dict() == {
            "type_": "constant",
            "rate": 62.5,
            "max_concurrency": None,
        }
        assert rate.strategy(62.5, met=False).rate is None
        assert rate.strategy(62.5, met=None).rate is None
        assert streams.strategy(8, met=True).to_dict()["streams"] == 8
        assert "streams" not in streams.strategy(8, met=False).to_dict()


class TestProfiles:
    def composed(self, axis: str, points: str, seconds: str, *more: str) -> AutoTune:
        bounds = ("--lower-bound", "4.0", "--upper-bound", "8192.0", "--max-points", points)
        axes = ("--axis", axis, *bounds, "--max-total-seconds", seconds)
        return search("--auto-tune", *axes, "--seed-increment", "--random-seed", "7", *more)

    def test_max_throughput_equals_its_command_line(self) -> None:
        found = search("--scenario", f"{SEARCHES}#Max Throughput", "--random-seed", "7")
        assert found == self.composed("rate", "15", "3600.0", *LENGTHS)

    @pytest.mark.parametrize("name", ["Meet Latency SLO", "Latency SLA"])
    def test_latency_slo_equals_its_command_line(self, name: str) -> None:
        found = search("--scenario", f"{SEARCHES}#{name}", "--random-seed", "7")
        limits = ("--slo-avg-ttft-ms", "500", "--slo-avg-itl-ms", "50")
        data = ("--data", "prompt_tokens=128,output_tokens=128")
        assert found == self.composed("concurrency", "18", "5400.0", *limits, *data)

    def test_flags_override_their_keys(self) -> None:
        found = search(
            "--scenario", f"{SEARCHES}#Max Throughput", "--max-points", "3", "--axis", "concurrency"
        )
        assert (found.max_points, found.axis, found.upper_bound) == (3, "concurrency", 8192)

    @pytest.mark.parametrize(
        ("key", "field"),
        [
            ("load_type: speed", "load_type"),
            ("auto_tune: often", "auto_tune"),
            ("lower_bound: low", "--lower-bound"),
        ],
    )
    def test_wrong_value_is_refused_by_its_name(self, key: str, field: str, tmp_path: Path) -> None:
        file = tmp_path / "one.yaml"
        file.write_text(f"dataset_name: Random\n{key}\n")
        assert refusal(["--scenario", str(file)]).field == field


class TestRefused:
    @pytest.mark.parametrize(
        ("flags", "field"),
        [
            (("--lower-bound", "0"), "--lower-bound"),
            (("--lower-bound", "low"), "--lower-bound"),
            (("--lower-bound", "9", "--upper-bound", "8"), "--lower-bound"),
            (("--lower-bound", "4.5", "--axis", "concurrency"), "--lower-bound"),
            (("--upper-bound", "8.5", "--axis", "concurrency"), "--upper-bound"),
            (("--upper-bound", "-1"), "--upper-bound"),
            (("--axis", "tokens"), "--axis"),
            (("--max-points", "0"), "--max-points"),
            (("--max-points", "many"), "--max-points"),
            (("--max-total-seconds", "0"), "--max-total-seconds"),
            (("--stages", '[{"rate": 1}]'), "--stages"),
            (("--rate", "3"), "--rate"),
            (("--max-requests", "3"), "--max-requests"),
            (("--max-seconds", "3"), "--max-seconds"),
            (("--warmup", "100"), "--warmup"),
            (("--multiplier", "3"), "--multiplier"),
            *(((flag, "0"), flag) for flag, _ in NINE),
            *(((flag, "fast"), flag) for flag, _ in NINE),
        ],
    )
    def test_flag_is_refused_with_a_remedy(self, flags: tuple[str, ...], field: str) -> None:
        refused = refusal(["--auto-tune", *flags])
        assert refused.field == field
        assert refused.remedy
        assert "\n" not in str(refused)

    @pytest.mark.parametrize("flag", [flag for flag, _ in NINE])
    def test_limit_without_a_search_names_the_flag_as_it_was_written(self, flag: str) -> None:
        refused = refusal(
            ["--profile", "constant", "--rate", "1", "--max-requests", "9", flag, "50"]
        )
        assert (refused.field, "--auto-tune" in refused.remedy) == (flag, True)

    @pytest.mark.parametrize(
        "word", ["--multiplyer", "--min-request", "--over-saturations", "--rampups", "--data-arg"]
    )
    def test_no_refused_flag_is_suggested(self, word: str) -> None:
        refused = refusal(["--auto-tune", word, "3"])
        assert refused.field == word
        assert not any(f"did you mean {flag}?" in refused.remedy for flag in arguments.REFUSED)

    def test_similar_limit_is_suggested(self) -> None:
        assert refusal(["--auto-tune", "--sla-avg-ttft", "3"]).remedy.startswith(
            "did you mean --sl"
        )
