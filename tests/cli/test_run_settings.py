"""Precedence of settings: flag, file, workload, default."""

import math

import pytest

from loadgen.cli import run_settings
from loadgen.cli.flags import run_settings as run_flags
from loadgen.config import presets as workloads
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "run.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    return written


@pytest.fixture(autouse=True)
def presets(monkeypatch):
    monkeypatch.setattr(
        workloads,
        "PRESETS",
        {
            "house": {"num_prompts": 10, "seed": 1, "request_rate": 2.0},
            "other": {"num_prompts": 99},
        },
    )


# -- who wins


def test_without_anything_the_settings_are_the_defaults():
    assert run_settings.settings({}) == RunSettings()


def test_a_flag_beats_the_file_which_beats_the_workload(write):
    path = write("num-prompts: 20\nseed: 2\n")
    found = run_settings.settings({"config": path, "workload": "house", "num_prompts": 30})
    assert (found.num_prompts, found.seed, found.request_rate) == (30, 2, 2.0)
    assert found.workload == "house"


def test_a_file_may_name_the_workload(write):
    found = run_settings.settings({"config": write("workload: house\nseed: 5\n")})
    assert (found.num_prompts, found.seed) == (10, 5)


def test_a_workload_given_as_a_flag_beats_the_files(write):
    assert (
        run_settings.settings(
            {"config": write("workload: house\n"), "workload": "other"}
        ).num_prompts
        == 99
    )


def test_a_flag_that_repeats_the_default_still_beats_the_file(write):
    assert run_settings.settings({"config": write("seed: 7\n"), "seed": 0}).seed == 0


def test_a_workload_that_is_none_is_refused_with_what_there_is():
    with pytest.raises(BadInput) as caught:
        run_settings.settings({"workload": "hose"})
    assert caught.value.field == "--workload"
    assert "house" in str(caught.value)


def test_given_flags_are_not_changed(write):
    given = {"config": write("seed: 1\n")}
    run_settings.settings(given)
    assert "config" in given


# -- what a file may say


def test_keys_are_the_flags_with_dashes_or_underscores_or_as_they_are_typed(write):
    for key in ("max-concurrency", "max_concurrency", "--max-concurrency"):
        assert run_settings.settings({"config": write(f"{key}: 3\n")}).max_concurrency == 3
    assert run_settings.settings({"config": write("rate: 3\n")}).request_rate == 3.0
    assert run_settings.settings({"config": write("class: [a:share=1]\n")}).classes == (
        "a:share=1",
    )
    assert run_settings.settings({"config": write("num-users: 3\n")}).users == 3


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("request-rate: 5", "request_rate", 5.0),
        ("request-rate: inf", "request_rate", math.inf),
        ("burstiness: .inf", "burstiness", math.inf),
        ("goodput: [ttft:200, tpot:50]", "goodput", ("ttft:200", "tpot:50")),
        ("goodput: ttft:200", "goodput", ("ttft:200",)),
        ("request-rate: [5]", "request_rate", 5.0),
        ("header:\n  - X-A=1\n  - X-B=2", "header", ("X-A=1", "X-B=2")),
        ("extra-body: {min_tokens: 3, stop: [a]}", "extra_body", {"min_tokens": 3, "stop": ["a"]}),
        ("ignore-eos: true", "ignore_eos", True),
        ("ignore-eos: yes", "ignore_eos", True),
        ("warm-connections: 10", "warm_connections", "10"),
        ("metric-percentiles: 99.9", "metric_percentiles", "99.9"),
        ("random-range-ratio: 0.2", "random_range_ratio", "0.2"),
        ("random-input-len: 900", "random_input_len", 900),
        ("random-input-len: 30:50", "random_input_len", "30:50"),
        ("random-input-len: 100,200", "random_input_len", "100,200"),
        ("max-concurrency: null", "max_concurrency", None),
        ("duration: 30", "duration", 30.0),
        ("duration: 2m", "duration", 120.0),
        ("max-think-time: 500ms", "max_think_time", 0.5),
        ("max-error-rate: 5%", "max_error_rate", 0.05),
        ("slo: [ttft_p99<1s, error_rate<1%]", "slo", "ttft_p99<1s,error_rate<1%"),
        (
            "stop-when: [ttft_p99>2s over 10s, errors>100]",
            "stop_when",
            "ttft_p99>2s over 10s,errors>100",
        ),
        ("retry: [429, 503]", "retry", "429,503"),
        ("rate-profile: [10@60s, 20@60s]", "rate_profile", "10@60s,20@60s"),
    ],
)
def test_values_become_what_the_flag_would_have_made_of_them(write, text, name, value):
    found = getattr(run_settings.settings({"config": write(text)}), name)
    assert found == value
    assert type(found) is type(value)


# -- what is refused


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("num_promts: 3", "did you mean 'num_prompts'?"),
        ("--max-concurency: 3", "did you mean 'max-concurrency'?"),
        ("zzz: 3", "see `loadgen help run`"),
        ("config: other.yaml", "config: unknown setting"),
        ("1: 2", "1: unknown setting"),
        ("rate: 1e400", "rate: '1e400' is too large"),
        ("duration: soon", "duration: 'soon' is not a time"),
        ("num-prompts: many", "num-prompts: 'many' is not a whole number"),
        ("num-prompts: 1.5", "num-prompts: is a value of type float; give a whole number"),
        ("latency-from: grpc", "latency-from: unknown value 'grpc'; choose from due"),
        ("goodput: {ttft: 200}", "goodput: is a value of type dict; give a list of texts"),
        ("rate-profile: 1@5s\nrate_profile: 2@5s", "rate_profile: is given twice"),
        ("duration: 00:02", "write seconds, or a number with ms"),
        ("extra-body: [1]", "extra-body: is a value of type list; give a JSON object"),
        ("- seed", "holds no settings"),
        ("", "holds no settings"),
        ("seed", "holds no settings"),
        ("seed: [", "is not valid YAML"),
        ("seed: !!python/object:os.system 1", "is not valid YAML"),
        (b"\xff\xfe\xfa", "is not valid YAML"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_in_one_line_that_names_it(write, text, says):
    path = write(text)
    with pytest.raises(BadInput) as caught:
        run_settings.settings({"config": path})
    assert caught.value.path[0] == "--config"
    assert path in str(caught.value)
    assert says in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["api-key: [hunter2]", "header: {X: hunter2}"])
def test_a_secret_of_the_wrong_type_is_not_repeated(write, text):
    with pytest.raises(BadInput) as caught:
        run_settings.settings({"config": write(text)})
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadInput, match="No such file"):
        run_settings.settings({"config": str(tmp_path / "none.yaml")})


def test_values_out_of_range_are_refused_where_they_are_written(write):
    path = write("request-rate: 0")
    with pytest.raises(BadInput, match="0 is out of range; give a number above 0") as caught:
        run_settings.settings({"config": path})
    assert caught.value.path == ("--config", path, "request-rate")


# -- several runs


def test_several_rates_are_a_run_each_with_draws_of_its_own():
    name, runs = run_settings.swept({"request_rate": (1.0, 2.0, 4.0), "seed": 7, "seed_order": 1})
    assert name == "request_rate"
    assert [run.request_rate for run in runs] == [1.0, 2.0, 4.0]
    assert runs[0] == RunSettings(request_rate=1.0, seed=7, seed_order=1)
    assert [(run.seed_arrivals, run.seed_prompts, run.seed_order) for run in runs[1:]] == [
        (8, 8, 2),
        (9, 9, 3),
    ]


def test_single_level_is_a_single_run():
    assert run_settings.swept({"request_rate": 1.0}) == (None, [RunSettings(request_rate=1.0)])


def test_a_file_may_have_several_and_a_flag_beats_them(write):
    path = write("max-concurrency: [1, 2]\n")
    name, runs = run_settings.swept({"config": path})
    assert (name, [run.max_concurrency for run in runs]) == ("max_concurrency", [1, 2])
    assert run_settings.swept({"config": path, "max_concurrency": 8})[0] is None


def test_several_of_both_are_refused():
    with pytest.raises(BadInput) as refused:
        run_settings.swept({"request_rate": (1.0, 2.0), "max_concurrency": (1, 2)})
    assert refused.value.field == "--max-concurrency"


def test_where_there_is_one_run_several_are_refused():
    with pytest.raises(BadInput) as refused:
        run_settings.settings({"request_rate": (1.0, 2.0)})
    assert refused.value.field == "--request-rate"


def test_settings_of_a_workload_are_not_chosen(write):
    path = write("seed: 2\n")
    assert run_settings.chosen({"config": path, "workload": "house", "compat": None}) == {
        "seed": 2,
        "workload": "house",
    }


# -- several runs by the flags of vllm-rs


def swept(line):
    return run_settings.swept(run_flags(line.split()))


def test_a_sweep_of_vllm_rs_is_a_setting_with_several_values():
    name, runs = swept("--sweep-max-concurrency 1,10 --max-concurrency 3 --num-prompts 4")
    assert (name, [run.max_concurrency for run in runs]) == ("max_concurrency", [1, 10])
    name, runs = swept("--sweep-request-rate 1,inf")
    assert (name, [run.request_rate for run in runs]) == ("request_rate", [1.0, math.inf])


def test_a_sweep_of_one_value_is_a_single_run():
    name, (run,) = swept("--sweep-max-concurrency 4 --sweep-num-prompts-factor 10")
    assert (name, run.max_concurrency, run.num_prompts) == (None, 4, 40)


def test_prompts_may_be_a_multiple_of_the_concurrency():
    _, runs = swept("--sweep-num-prompts-factor 20 --sweep-max-concurrency 1,10 --num-prompts 4")
    assert [run.num_prompts for run in runs] == [20, 200]
    with pytest.raises(BadInput, match="--sweep-num-prompts-factor: given without a concurrency"):
        swept("--sweep-num-prompts-factor 20 --sweep-request-rate 1,2")


def test_repeated_runs_have_the_same_load_and_other_prompts():
    name, runs = swept("--num-runs 3 --max-concurrency 8 --seed 5")
    assert (name, [run.max_concurrency for run in runs]) == ("max_concurrency", [8, 8, 8])
    assert [run.seed_prompts for run in runs[1:]] == [6, 7]
    name, runs = swept("--num-runs 2")
    assert (name, [run.request_rate for run in runs]) == ("request_rate", [math.inf, math.inf])
    assert swept("--num-runs 1")[0] is None


def test_repeats_of_a_sweep_are_refused():
    with pytest.raises(BadInput, match="--num-runs: given with several values of --request-rate"):
        swept("--num-runs 2 --request-rate 1,2")


@pytest.mark.parametrize(
    "said", ["--num-runs 0", "--sweep-max-concurrency 1,x", "--sweep-request-rate ,"]
)
def test_a_sweep_that_cannot_be_is_refused_with_its_flag(said):
    with pytest.raises(BadInput) as refused:
        swept(said)
    assert refused.value.field == said.split()[0]


def test_percentiles_of_a_summary_are_added_to_those_of_the_results():
    _, (run,) = swept("--sweep-summary-percentiles 95,99 --metric-percentiles 50,99")
    assert run.metric_percentiles == "50,99,95"
