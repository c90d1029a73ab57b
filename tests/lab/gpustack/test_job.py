"""A benchmark-runner command line becomes runs of loadgen or is refused by the unsupported flag."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from loadgen.errors import BadInput, Flags, Unreachable, setting, spelled
from loadgen.lab.gpustack import arguments
from loadgen.lab.gpustack.job import Job
from loadgen.lab.gpustack.steps import Step
from loadgen.lab.gpustack.transient import NO_TRANSIENTS, Transient
from tests.helpers.command_line import TOKENIZER
from tests.helpers.gpustack_contract import COMMAND_LINES, DATA, argv
from tests.helpers.source import ROOT

JOB = Flags(arguments.FLAG_NAMES)
PAGE = ROOT / "tests" / "data" / "pages" / "qwen3.5-9b-h100.md"
SHAREGPT = "/workspace/benchmark-runner/sharegpt_data/ShareGPT_V3_unfiltered_cleaned_split.json"
TARGET = ("--target", "http://127.0.0.1:8000")
LENGTHS = ("--data", "prompt_tokens=16,output_tokens=4")
PAIR = '"prompt_tokens": 1, "output_tokens": 1'
CONSTANT = ("--profile", "constant", "--rate", "2", "--max-requests", "3")


def asked(argv: Sequence[str]) -> Job:
    return Job.of(arguments.parse(argv))


def only(*flags: str) -> Step:
    (step,) = asked([*TARGET, *flags]).steps
    return step


def refusal(*flags: str) -> BadInput:
    with pytest.raises(BadInput) as refused, spelled(JOB):
        asked(flags)
    return refused.value


def filled(name: str, token: str = "t") -> list[str]:
    return argv(
        name,
        target="http://10.0.0.1:40000",
        rate=1000,
        processor=TOKENIZER,
        output_dir="/var/lib/gpustack/benchmarks",
        progress_url="http://10.0.0.2/v2/benchmarks/7/state",
        token=token,
        input=1024,
        output=128,
        requests=1000,
    )


class TestGpustacksCommandLines:
    @pytest.mark.parametrize("name", COMMAND_LINES)
    def test_all_are_understood(self, name: str) -> None:
        job = asked(filled(name))
        assert job.progress is not None
        assert (job.progress.url, job.progress.token) == (
            "http://10.0.0.2/v2/benchmarks/7/state",
            "t",
        )
        for step in job.steps:
            assert step.settings.urls == ("http://10.0.0.1:40000",)
            assert (step.settings.backend, step.settings.tokenizer) == ("openai-chat", TOKENIZER)
            assert step.settings.ignore_eos

    @pytest.mark.parametrize("name", ["the first, random", "with reasoning, random"])
    def test_a_constant_rate_is_evenly_spaced_with_at_most_512_in_flight(self, name: str) -> None:
        (step,) = asked(filled(name)).steps
        settings = step.settings
        assert (settings.request_rate, settings.burstiness, settings.max_concurrency) == (
            1000,
            math.inf,
            512,
        )
        assert (settings.random_input_len, settings.random_output_len, settings.num_prompts) == (
            1024,
            128,
            1000,
        )
        assert (settings.dataset_name, settings.dataset_rule, settings.seed) == (
            "random",
            "guidellm-0.5",
            42,
        )

    @pytest.mark.parametrize("name", ["the first, random", "with reasoning, random"])
    def test_the_summary_is_where_gpustack_looks_for_it_with_the_records_beside_it(
        self, name: str
    ) -> None:
        (step,) = asked(filled(name)).steps
        assert step.summary == Path("/var/lib/gpustack/benchmarks/7.json")
        assert step.settings.records == "/var/lib/gpustack/benchmarks/7.records.jsonl"

    def test_streams_are_a_closed_loop_and_spread_lengths_are_loadgens_own(self) -> None:
        (step,) = asked(filled("streams")).steps
        settings = step.settings
        assert (settings.request_rate, settings.max_concurrency, settings.duration) == (
            math.inf,
            4,
            60,
        )
        assert (settings.random_input_len, settings.dataset_rule) == ("normal:1024:2:4:30", None)
        assert (step.strategy.type_, step.strategy.rate) == ("concurrent", 4)

    def test_stages_are_runs_with_limits_seeds_and_files_of_their_own(self) -> None:
        steps = asked(filled("stages")).steps
        assert [step.summary.name for step in steps] == ["7__stage0.json", "7__stage1.json"]
        assert [step.settings.request_rate for step in steps] == [50, 100]
        assert [step.settings.num_prompts for step in steps] == [6, 8]
        assert [step.settings.duration for step in steps] == [None, 30]
        assert [step.settings.seed for step in steps] == [42, 43]

    def test_without_an_increment_stages_share_the_seed(self) -> None:
        line = [
            flag if flag != "--seed-increment" else "--no-seed-increment"
            for flag in filled("stages")
        ]
        assert [step.settings.seed for step in asked(line).steps] == [42, 42]

    def test_the_patience_of_guidellm_is_that_of_a_read(self) -> None:
        (step,) = asked(filled("with reasoning, random")).steps
        assert (step.settings.first_token_timeout, step.settings.stall_timeout) == (3600, 3600)

    def test_handlers_that_count_reasoning_are_what_is_done_anyway(self) -> None:
        older = '{"response_handlers": {"chat_completions": "chat_completions_with_reasoning"}}'
        assert only(*LENGTHS, *CONSTANT, "--backend-kwargs", older) == only(*LENGTHS, *CONSTANT)

    def test_a_key_and_certificates_are_those_of_the_backend(self) -> None:
        settings = only(
            *LENGTHS, *CONSTANT, "--backend-args", '{"api_key": "k", "verify": false}'
        ).settings
        assert (settings.api_key, settings.insecure) == ("k", True)

    def test_sharegpt_is_read_by_benchmark_runners_rule(self) -> None:
        step = only(*CONSTANT, "--data", SHAREGPT)
        assert (step.settings.dataset_name, step.settings.dataset_path) == ("sharegpt", SHAREGPT)
        assert step.settings.dataset_rule == "benchmark-runner"

    def test_questions_of_sharegpt_are_chosen_by_their_length(self) -> None:
        flags = ("--sharegpt-min-input-tokens", "10", "--sharegpt-max-input-tokens", "900")
        step = only(*CONSTANT, "--data", SHAREGPT, *flags, "--sharegpt-max-output-tokens", "64")
        assert (step.settings.sharegpt_input_len, step.settings.sharegpt_output_len) == (
            "10:900",
            64,
        )
        assert only(*CONSTANT, "--data", SHAREGPT, *flags[:2]).settings.sharegpt_input_len == "10:"

    def test_turns_and_shared_prefixes_are_sessions(self) -> None:
        settings = only(*CONSTANT, "--data", "prompt_tokens=16,output_tokens=4,turns=3").settings
        assert (settings.dataset_name, settings.turns, settings.prefix_buckets) == (
            "multi_turn",
            "3",
            None,
        )
        buckets = (
            '[{"prefix_tokens": 90, "prefix_count": 4, "bucket_weight": 70}, {"prefix_tokens": 30}]'
        )
        data = f'{{"prompt_tokens": 16, "output_tokens": 4, "prefix_buckets": {buckets}}}'
        settings = only(*CONSTANT, "--data", data).settings
        assert (settings.turns, settings.prefix_buckets) == ("1", "4x90:70,1x30:100")
        assert (settings.random_input_len, settings.random_output_len, settings.ignore_eos) == (
            16,
            4,
            True,
        )

    def test_one_turn_without_prefixes_is_guidellms_text(self) -> None:
        data = '{"prompt_tokens": 16, "output_tokens": 4, "turns": 1, "prefix_buckets": null}'
        assert only(*CONSTANT, "--data", data) == only(*CONSTANT, *LENGTHS)

    def test_warmup_and_cooldown_are_phases(self) -> None:
        flags = ("--warmup", '{"percent": 0.1, "mode": "requests"}', "--cooldown", "1")
        job = asked([*TARGET, *LENGTHS, *CONSTANT, *flags])
        assert (job.phases.warmup, job.phases.cooldown) == (
            Transient(0.1, "requests"),
            Transient(1.0),
        )
        assert asked([*TARGET, *LENGTHS, *CONSTANT]).phases == NO_TRANSIENTS

    def test_saturation_is_detected_if_asked(self) -> None:
        assert asked([*TARGET, *LENGTHS, *CONSTANT, "--detect-saturation"]).detect_saturation
        assert not asked([*TARGET, *LENGTHS, *CONSTANT]).detect_saturation

    def test_a_token_is_not_told_where_a_job_is_shown(self) -> None:
        assert "hunter2" not in repr(asked(filled("stages", token="hunter2")))


class TestProfiles:
    def published(self) -> dict[str, str]:
        found = re.findall(r"##### ([A-Za-z ]+?) ```yaml (.*?) ```", PAGE.read_text())
        return {name: re.sub(r" (?=[a-z_]+:)", "\n", body) for name, body in found}

    def test_published_profiles_equal_their_command_lines(self, tmp_path: Path) -> None:
        assert list(self.published()) == [
            "ShareGPT",
            "Throughput",
            "Long Context",
            "Generation Heavy",
        ]
        for name, body in self.published().items():
            file = tmp_path / f"{name}.yaml"
            file.write_text(body)
            said = dict(line.split(": ") for line in body.splitlines())
            lengths = (
                f"prompt_tokens={said.get('dataset_input_tokens')},"
                f"output_tokens={said.get('dataset_output_tokens')}"
            )
            data = ("--data", SHAREGPT if name == "ShareGPT" else lengths)
            rate = ("--rate", said["request_rate"], "--max-requests", said["total_requests"])
            composed = only(
                "--profile",
                "constant",
                *rate,
                *data,
                "--random-seed",
                said.get("dataset_seed", "0"),
            )
            path = ("--data", SHAREGPT) if name == "ShareGPT" else ()
            assert (
                only("--scenario", str(file), *path, *(("--random-seed", "0") if path else ()))
                == composed
            )

    @pytest.mark.parametrize(
        ("name", "rate", "requests"),
        [
            ("Throughput", math.inf, 1000),
            ("Latency", 1, 100),
            ("Long Context", 1, 100),
            ("Generation Heavy", 1, 200),
        ],
    )
    def test_shipped_profiles_are_chosen_by_name(
        self, name: str, rate: float, requests: int
    ) -> None:
        settings = only("--scenario", f"{DATA / 'profiles.yaml'}#{name}").settings
        assert (settings.request_rate, settings.num_prompts, settings.max_concurrency) == (
            rate,
            requests,
            512,
        )
        assert settings.dataset_rule == "guidellm-0.5"

    def test_profile_of_several_must_be_named(self) -> None:
        refused = refusal(*TARGET, "--scenario", str(DATA / "profiles.yaml"))
        assert "Throughput, Latency, Long Context, Generation Heavy" in refused.remedy


class TestProfilesOfGuidellm:
    @pytest.mark.parametrize(
        ("flags", "rate", "burstiness", "cap"),
        [
            (("constant", "--rate", "5"), 5, math.inf, 512),
            (("async", "--rate", "5"), 5, math.inf, 512),
            (("constant", "--rate", "-1"), math.inf, math.inf, 512),
            (("constant", "--rate", "5", "--max-concurrency", "9"), 5, math.inf, 9),
            (("poisson", "--rate", "5"), 5, 1, 512),
            (("synchronous",), math.inf, 1, 1),
            (("concurrent", "--rate", "7"), math.inf, 1, 7),
            (("throughput",), math.inf, 1, 512),
        ],
    )
    def test_each_is_a_rate_a_shape_and_a_cap(
        self, flags: tuple[str, ...], rate: float, burstiness: float, cap: int
    ) -> None:
        settings = only(*LENGTHS, "--max-requests", "3", "--profile", *flags).settings
        assert (settings.request_rate, settings.burstiness, settings.max_concurrency) == (
            rate,
            burstiness,
            cap,
        )


class TestRefused:
    @pytest.mark.parametrize(
        ("flags", "field"),
        [
            (("--warmup", "often"), "--warmup/--warmup-percent"),
            (("--warmup", "-1"), "--warmup"),
            (("--warmup", "3"), "--warmup"),
            (("--cooldown", '{"percent": 1.5, "mode": "requests"}'), "--cooldown"),
            (("--cooldown", '{"percent": 0.1, "mode": "both"}'), "--cooldown"),
            (("--cooldown", '{"value": 1, "mode": "duration"}'), "--cooldown"),
            (("--over-saturation", "{}"), "--over-saturation"),
            (("--auto-tune",), "--profile"),
            (("--slo-p99-ttft-ms", "500"), "--slo-p99-ttft-ms"),
            (("--sla-p99-tpot-ms", "500"), "--sla-p99-tpot-ms"),
            (("--lower-bound", "4"), "--lower-bound"),
            (("--max-points", "4"), "--max-points"),
            (("--multiplier", "10"), "--multiplier"),
            (("--min-requests", "10"), "--min-requests"),
            (("--profile", "sweep"), "--profile"),
            (("--rate", "1,2"), "--rate"),
            (("--backend-kwargs", '{"http2": true}'), "--backend-kwargs http2"),
            (("--backend-kwargs", "{"), "--backend-kwargs/--backend-args"),
            (("--backend-kwargs", "3"), "--backend-kwargs/--backend-args"),
            (("--backend-kwargs", '{"timeout": "x"}'), "--backend-kwargs timeout"),
            (("--backend-kwargs", '{"timeout": -1}'), "--backend-kwargs timeout"),
            (
                ("--backend-kwargs", '{"request_handlers": "x"}'),
                "--backend-kwargs request_handlers",
            ),
            (
                ("--backend-kwargs", '{"request_handlers": {"a": []}}'),
                "--backend-kwargs request_handlers",
            ),
            (("--scenario", "nowhere.yaml"), "--scenario"),
            (("--data", "hub/some-set"), "--data"),
            (("--max-error-rate", "1"), "--max-error-rate"),
            (("--outputs", "7.html"), "--outputs"),
            (("--outputs", "7.json,7.csv"), "--outputs"),
            (("--output-dir", "a", "--output-path", "b.json"), "--output-path"),
            (("--processor-args", '{"revision": "x"}'), "--processor-args revision"),
            (("--processor-args", "3"), "--processor-args"),
            (("--progress-url", "10.0.0.2/state"), "--progress-url"),
            (
                ("--progress-url", "https://a", "--progress-ca-cert", "/nowhere"),
                "--progress-ca-cert",
            ),
            (("--max-requests", "0"), "--max-requests"),
            (("--rates", "3"), "--rates"),
            (("--tokenizer", "x"), "--tokenizer"),
        ],
    )
    def test_flag_is_refused_with_a_remedy(self, flags: tuple[str, ...], field: str) -> None:
        refused = (
            refusal(*TARGET, *LENGTHS, *CONSTANT, *flags)
            if flags[0] != "--rate"
            else refusal(*TARGET, *LENGTHS, "--profile", "constant", "--max-requests", "3", *flags)
        )
        assert refused.field == field
        assert refused.remedy
        assert "\n" not in str(refused)

    @pytest.mark.parametrize(
        ("data", "field"),
        [
            ("hub/some-set", "--data"),
            ("prompt_tokens=16", "--data output_tokens"),
            ("prompt_tokens=many,output_tokens=1", "--data prompt_tokens"),
            ("prompt_tokens=1,output_tokens=1,turns=0", "--data turns"),
            ("prompt_tokens=1,output_tokens=1,turns=two", "--data turns"),
            ("prompt_tokens=1,output_tokens=1,prefix_tokens=9", "--data prefix_tokens"),
            (f'{{{PAIR}, "prefix_buckets": 3}}', "--data prefix_buckets"),
            (f'{{{PAIR}, "prefix_buckets": [{{"prefix_tokens": 0}}]}}', "--data prefix_buckets"),
            (
                f'{{{PAIR}, "prefix_buckets": [{{"prefix_tokens": 9, "colour": 1}}]}}',
                "--data prefix_buckets",
            ),
            ("prompt_tokens=1,output_tokens=1,colour=3", "--data colour"),
        ],
    )
    def test_prompts_that_cannot_be_had(self, data: str, field: str) -> None:
        assert refusal(*TARGET, *CONSTANT, "--data", data).field == field

    @pytest.mark.parametrize(
        ("flags", "field"),
        [
            ((*LENGTHS, *CONSTANT), "--target"),
            ((*TARGET, *CONSTANT), "--data"),
            ((*TARGET, *LENGTHS), "--profile"),
            ((*TARGET, *LENGTHS, "--profile", "constant", "--max-requests", "3"), "--rate"),
            ((*TARGET, *LENGTHS, "--profile", "constant", "--rate", "3"), "--max-requests"),
            (
                (
                    *TARGET,
                    *LENGTHS,
                    "--profile",
                    "concurrent",
                    "--rate",
                    "1.5",
                    "--max-requests",
                    "3",
                ),
                "--rate",
            ),
            ((*TARGET, *LENGTHS, *CONSTANT, "--stages", '[{"rate": 1}]'), "--profile"),
            ((*TARGET, *LENGTHS, "--stages", "[]"), "--stages"),
            ((*TARGET, *LENGTHS, "--stages", '[{"rate": 1}]'), "--max-requests"),
        ],
    )
    def test_missing_or_contradictory_flags_are_refused(
        self, flags: tuple[str, ...], field: str
    ) -> None:
        assert refusal(*flags).field == field

    @pytest.mark.parametrize(
        ("stage", "field"),
        [
            ('"rate": "fast"', "--stages rate"),
            ('"rate": 0', "--stages rate"),
            ('"rate": null', "--stages"),
            ('"rate": 1, "max_requests": "many"', "--stages max_requests"),
            ('"rate": 1, "max_requests": 2.5', "--stages max_requests"),
            ('"rate": 1, "max_requests": 1e999', "--stages max_requests"),
            ('"rate": 1, "max_requests": 0', "--stages max_requests"),
            ('"rate": 1, "max_requests": null', "--max-requests"),
            ('"rate": 1, "max_seconds": "long"', "--stages max_seconds"),
            ('"rate": 1, "colour": 3', "--stages colour"),
        ],
    )
    def test_a_stage_by_its_own_key(self, stage: str, field: str) -> None:
        assert (
            refusal(*TARGET, *LENGTHS, "--max-requests", "0", "--stages", f"[{{{stage}}}]").field
            == field
        )

    @pytest.mark.parametrize("rate", ["1.5", "Infinity", "NaN", "0"])
    def test_streams_that_are_no_number(self, rate: str) -> None:
        refused = refusal(
            *TARGET,
            *LENGTHS,
            "--max-requests",
            "3",
            "--axis",
            "concurrency",
            "--stages",
            f'[{{"rate": {rate}}}]',
        )
        assert refused.field == "--stages rate"


class TestFlagsOfErrors:
    def test_an_unreachable_server_is_named_by_target(self) -> None:
        with (
            pytest.raises(Unreachable, match=r"^refused; name another with --target$"),
            spelled(JOB),
        ):
            raise Unreachable(f"refused; name another with {setting.base_url}")

    def test_remedies_have_the_names_of_a_job_and_command_lines_their_own(self) -> None:
        with pytest.raises(BadInput) as refused, spelled(JOB):
            raise BadInput(
                setting.num_prompts,
                "0",
                f"give {setting.duration}, or use `loadgen run --duration`",
            )
        assert (
            str(refused.value)
            == "--max-requests: 0; give --max-seconds, or use `loadgen run --duration`"
        )
