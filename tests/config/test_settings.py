"""Settings: what cannot be used is refused before anything is sent, in one line with the flag
and a remedy.
"""

import dataclasses
import math

import pytest

from loadgen.config.load import MAX_REQUESTS
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings, is_closed_loop, public
from loadgen.errors import BadInput
from loadgen.util.redaction import header_name, redact_user

RAMP = {"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0, "ramp_up_end_rps": 10.0}

# What was given, and the flag that the message names.
BAD = [
    ({"request_rate": 0.0}, "--request-rate"),
    ({"request_rate": -1.0}, "--request-rate"),
    ({"request_rate": math.nan}, "--request-rate"),
    ({"request_rate": 1e9}, "--request-rate"),
    ({"request_rate": -math.inf}, "--request-rate"),
    ({"burstiness": 0.0}, "--burstiness"),
    ({"burstiness": -1.0}, "--burstiness"),
    ({"burstiness": math.nan}, "--burstiness"),
    ({"max_concurrency": 0}, "--max-concurrency"),
    ({"max_concurrency": -3}, "--max-concurrency"),
    ({"max_concurrency": 1_000_001}, "--max-concurrency"),
    ({"users": 0}, "--users"),
    ({"users": 1_000_001}, "--users"),
    ({"users": 5, "request_rate": 4.0}, "--request-rate"),
    ({"users": 5, "max_concurrency": 4}, "--max-concurrency"),
    ({"users": 5, "rate_profile": "4@5s"}, "--users"),
    ({"rate_profile": "4@721h"}, "--rate-profile"),
    ({"num_warmups": 1_000_001}, "--num-warmups"),
    ({"warmup": 0.0, "request_rate": 1.0}, "--warmup"),
    ({"warmup": 3.0}, "--warmup"),
    ({"warmup": 3.0, "request_rate": 1.0, "num_warmups": 3}, "--warmup"),
    ({"users": 5, "burstiness": 2.0}, "--burstiness"),
    ({"concurrency_profile": "4@5s", "burstiness": 2.0}, "--burstiness"),
    ({"num_prompts": 0}, "--num-prompts"),
    ({"num_prompts": MAX_REQUESTS + 1}, "--num-prompts"),
    ({"duration": 0.0, "request_rate": 1.0}, "--duration"),
    ({"duration": math.nan, "request_rate": 1.0}, "--duration"),
    ({"duration": math.inf, "request_rate": 1.0}, "--duration"),
    ({"duration": 31 * 86400.0, "request_rate": 1.0}, "--duration"),
    ({"duration": 86400.0, "request_rate": 1e6}, "--duration"),
    ({"duration": 86400.0, **RAMP, "ramp_up_end_rps": 1e6}, "--duration"),
    ({"duration": 10.0, "base_url": "http://gpu:8000"}, "--duration"),
    ({"duration": 10.0, "engine": "llamacpp", "model": "m.gguf"}, "--duration"),
    ({"duration": 10.0, "num_prompts": 5}, "--duration"),
    ({"ramp_up_start_rps": 1.0}, "--ramp-up-start-rps"),
    ({"ramp_up_end_rps": 1.0}, "--ramp-up-end-rps"),
    ({"ramp_up_strategy": "linear"}, "--ramp-up-strategy"),
    ({"ramp_up_strategy": "linear", "ramp_up_start_rps": 1.0}, "--ramp-up-strategy"),
    ({"ramp_up_strategy": "linear", "ramp_up_end_rps": 1.0}, "--ramp-up-strategy"),
    ({**RAMP, "ramp_up_start_rps": 10.0, "ramp_up_end_rps": 1.0}, "--ramp-up-end-rps"),
    ({**RAMP, "ramp_up_start_rps": 5.0, "ramp_up_end_rps": 5.0}, "--ramp-up-end-rps"),
    ({**RAMP, "ramp_up_end_rps": 1e7}, "--ramp-up-end-rps"),
    ({"random_range_ratio": "100%"}, "--random-range-ratio"),
    ({**RAMP, "ramp_up_strategy": "exponential", "ramp_up_start_rps": 0.0}, "--ramp-up-end-rps"),
    ({**RAMP, "ramp_up_start_rps": -1.0}, "--ramp-up-start-rps"),
    ({**RAMP, "ramp_up_end_rps": math.nan}, "--ramp-up-end-rps"),
    ({**RAMP, "request_rate": 5.0}, "--request-rate"),
    ({"num_warmups": -1}, "--num-warmups"),
    ({"ready_check_timeout_sec": -1.0}, "--ready-check-timeout-sec"),
    ({"connect_timeout": -1.0}, "--connect-timeout"),
    ({"connect_timeout": math.inf}, "--connect-timeout"),
    ({"first_token_timeout": -0.1}, "--first-token-timeout"),
    ({"stall_timeout": math.nan}, "--stall-timeout"),
    ({"timeout": -5.0}, "--timeout"),
    ({"seed": -1}, "--seed"),
    ({"seed_arrivals": -1}, "--seed-arrivals"),
    ({"seed_prompts": -1}, "--seed-prompts"),
    ({"seed_order": -1}, "--seed-order"),
    ({"random_input_len": 0}, "--random-input-len"),
    ({"random_output_len": 0}, "--random-output-len"),
    ({"random_prefix_len": -1}, "--random-prefix-len"),
    ({"sharegpt_output_len": 0}, "--sharegpt-output-len"),
    ({"max_error_rate": 1.5}, "--max-error-rate"),
    ({"max_error_rate": -0.1}, "--max-error-rate"),
    ({"max_error_rate": math.nan}, "--max-error-rate"),
    ({"port": 0}, "--port"),
    ({"port": 65536}, "--port"),
    ({"port": -1}, "--port"),
    ({"engine": "sim", "port": 8000}, "--port"),
    ({"engine": "sim", "replicas": 0}, "--replicas"),
    ({"engine": "sim", "replicas": 129}, "--replicas"),
    ({"engine": "sim", "base_url": "http://127.0.0.1:8000"}, "--base-url"),
    ({"base_url": "http://gpu:8000/generate", "endpoint": "/x"}, "--base-url"),
    ({"metadata": ("gpu",)}, "--metadata"),
    ({"metadata": (" date =2026/11/22",)}, "--metadata"),
    ({"metadata": ("model_id=other",)}, "--metadata"),
    ({"warm_connections": "some"}, "--warm-connections"),
    ({"warm_connections": "-1"}, "--warm-connections"),
    ({"warm_connections": "1.5"}, "--warm-connections"),
    ({"warm_connections": ""}, "--warm-connections"),
    ({"extra_body": [1]}, "--extra-body"),
    ({"extra_body": "x"}, "--extra-body"),
    ({"extra_body": {"stream": False}}, "--extra-body"),
    ({"extra_body": {"messages": []}}, "--extra-body"),
    ({"extra_body": {"prompt": "x"}}, "--extra-body"),
    ({"extra_body": {"n": 2}}, "--extra-body"),
    ({"extra_body": {"n": "2"}}, "--extra-body"),
    ({"extra_body": {"best_of": 3}}, "--extra-body"),
    ({"extra_body": {"use_beam_search": True}}, "--extra-body"),
    ({"percentile_metrics": "ttft,speed"}, "--percentile-metrics"),
    ({"percentile_metrics": ""}, "--percentile-metrics"),
    ({"metric_percentiles": "50,many"}, "--metric-percentiles"),
    ({"metric_percentiles": "101"}, "--metric-percentiles"),
    ({"metric_percentiles": "-1"}, "--metric-percentiles"),
    ({"metric_percentiles": "nan"}, "--metric-percentiles"),
    ({"metric_percentiles": "50,"}, "--metric-percentiles"),
    ({"goodput": ("speed:5",)}, "--goodput"),
    ({"goodput": ("ttft",)}, "--goodput"),
    ({"goodput": ("ttft:fast",)}, "--goodput"),
    ({"goodput": ("ttft:-1",)}, "--goodput"),
    ({"goodput": ("ttft:inf",)}, "--goodput"),
    ({"slo": "speed_p99<5ms"}, "--slo"),
    ({"slo": "ttft_p99<5min"}, "--slo"),
    ({"slo": ""}, "--slo"),
    ({"metadata": ("comment",)}, "--metadata"),
]


@pytest.mark.parametrize(
    ("given", "at_fault"),
    BAD,
    ids=lambda value: (
        None if isinstance(value, str) else ",".join(f"{k}={v}" for k, v in value.items())
    ),
)
def test_a_setting_that_cannot_be_used_is_refused(given, at_fault):
    with pytest.raises(BadInput) as caught:
        RunSettings(**given).checked()
    error = caught.value
    assert error.field == at_fault
    assert error.problem
    assert error.remedy
    assert "\n" not in str(error)
    assert str(error) == f"{at_fault}: {error.problem}; {error.remedy}"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"request_rate": 0.01},
        {"request_rate": 1e6, "num_prompts": MAX_REQUESTS},
        {"burstiness": math.inf, "request_rate": 5.0},
        {"duration": 10.0, "request_rate": 5.0},
        {"duration": 10.0, "max_concurrency": 4},
        {"duration": 10.0, **RAMP},
        RAMP,
        {**RAMP, "ramp_up_start_rps": 0.0},
        {**RAMP, "request_rate": math.inf},
        {"endpoint": "/v1/chat/completions"},
        {"extra_body": {}},
        {"extra_body": {"stream": True, "min_tokens": 3}},
        {"extra_body": {"n": 1, "best_of": None, "use_beam_search": False}},
        {"metric_percentiles": "0,50,99.9,100"},
        {"random_range_ratio": "50%"},
        {"percentile_metrics": "e2el"},
        {"warm_connections": "0"},
        {"first_token_timeout": 0.0, "stall_timeout": 0.0, "timeout": 0.0},
        {"goodput": ("ttft:200", "tpot:0.5")},
        {"metadata": ("a=b=c", "d=")},
        {"max_error_rate": 0.0},
    ],
)
def test_settings_that_can_be_used_come_back_as_they_are(given):
    settings = RunSettings(**given)
    assert settings.checked() == settings


def test_settings_are_frozen_and_replace_makes_a_copy():
    settings = RunSettings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.seed = 1
    assert (settings.replace(seed=1).seed, settings.seed) == (1, 0)


def test_settings_refuse_names_that_are_no_fields_and_deletion():
    settings = RunSettings()
    with pytest.raises(dataclasses.FrozenInstanceError, match="'rate'"):
        settings.rate = 4  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'seed'"):
        del settings.seed  # type: ignore[misc]
    assert settings == RunSettings()


def test_settings_with_equal_fields_are_equal_and_have_one_hash():
    settings = RunSettings(seed=3)
    assert settings == RunSettings(seed=3) != RunSettings(seed=4)
    assert hash(settings) == hash(RunSettings(seed=3))


def test_every_field_has_a_group_and_a_help_text():
    for field in dataclasses.fields(RunSettings):
        assert field.metadata["option"].group, field.name
        assert field.metadata["option"].help, field.name


def test_a_flag_is_the_field_with_dashes():
    assert flag("max_concurrency") == "--max-concurrency"


@pytest.mark.parametrize(
    ("given", "closed"),
    [
        ({}, False),
        ({"max_concurrency": 4}, True),
        ({"max_concurrency": 4, "request_rate": 10.0}, False),
        ({"max_concurrency": 4, **RAMP}, False),
    ],
)
def test_closed_loop_is_a_burst_with_a_cap(given, closed):
    assert is_closed_loop(RunSettings(**given)) is closed


# -- secrets

SECRET = "hunter2"
SECRETIVE = RunSettings(
    api_key=SECRET,
    header=(f"X-Key={SECRET}", f"Cookie: {SECRET}", f"={SECRET}", f"Basic={SECRET}=="),
    base_url=f"https://me:{SECRET}@example.org:8443/api",
)


def test_repr_has_changed_fields_and_no_secret():
    assert repr(RunSettings()) == "RunSettings()"
    assert repr(RunSettings(request_rate=5.0, seed=3)) == "RunSettings(request_rate=5.0, seed=3)"
    assert SECRET not in repr(SECRETIVE)
    assert SECRET not in str(SECRETIVE)
    assert "api_key='(given)'" in repr(SECRETIVE)


def test_public_settings_hide_secrets():
    shown = public(SECRETIVE)
    assert SECRET not in str(shown)
    assert shown["header"] == ["X-Key=(given)", "Cookie=(given)", "=(given)", "Basic=(given)"]
    assert shown["base_url"] == "https://(given)@example.org:8443/api"
    assert public(RunSettings())["api_key"] is None


def test_public_settings_are_json():
    shown = public(RunSettings(goodput=("ttft:1",), extra_body={"a": [1]}))
    assert (shown["request_rate"], shown["goodput"], shown["extra_body"]) == (
        "inf",
        ["ttft:1"],
        {"a": [1]},
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://a:8000", "http://a:8000"),
        ("http://u:p@a", "http://(given)@a"),
        ("u:p@a", "(given)@a"),
        ("http://u:p@x@a", "http://(given)@a"),
    ],
)
def test_a_user_in_a_url_is_not_shown(url, shown):
    assert redact_user(url) == shown


@pytest.mark.parametrize(
    ("header", "name"),
    [("A-b=c", "A-b"), ("A: b", "A"), ("=b", ""), ("", ""), (SECRET, ""), (f"Bearer {SECRET}", "")],
)
def test_the_name_of_a_header_is_what_stands_before_its_value(header, name):
    assert header_name(header) == name


@pytest.mark.parametrize(
    ("name", "value"), [("latency_from", "arrival"), ("ramp_up_strategy", "cubic")]
)
def test_a_choice_that_is_none_is_refused_with_those_there_are(name, value):
    with pytest.raises(BadInput, match=f"unknown value '{value}'; choose from "):
        RunSettings(**{name: value}).checked()


def test_times_may_be_given_with_their_unit():
    assert RunSettings(duration="30s", timeout="2m") == RunSettings(duration=30.0, timeout=120.0)
    with pytest.raises(BadInput, match=r"^--duration: 'long' is not a time"):
        RunSettings(duration="long")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("request_rate", "ten", "a number"),
        ("request_rate", True, "a number"),
        ("num_prompts", 2.5, "a whole number"),
        ("save_result", "yes", "True or False"),
        ("goodput", ("ttft", 3), "a list of texts"),
        ("base_url", 8000, "a text or a list of texts"),
    ],
)
def test_a_value_of_another_type_is_refused_where_it_is_given(name, value, expected):
    for make in (RunSettings, RunSettings().replace):
        with pytest.raises(BadInput) as caught:
            make(**{name: value})
        assert (caught.value.field, caught.value.remedy) == (flag(name), f"give {expected}")


def test_unknown_field_of_replace_is_refused_with_the_nearest():
    with pytest.raises(BadInput) as caught:
        RunSettings().replace(requst_rate=3)
    assert (caught.value.field, caught.value.remedy) == (
        "--requst-rate",
        "did you mean request_rate?",
    )


def test_workload_gives_its_settings_by_name():
    assert RunSettings.of_workload("short").replace(num_prompts=5) == RunSettings(
        random_input_len=128, random_output_len=4, num_prompts=5, seed=42
    )
    with pytest.raises(BadInput, match=r"^--workload: unknown preset or file 'shor'"):
        RunSettings.of_workload("shor")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"session_token": "x token"}, "'x token' contains characters"),
        ({"session_token": "X-Token", "header": ("x-token=1",)}, "--header sends x-token, too"),
        ({"session_token": "Set-Cookie", "header": ("Cookie=a=1",)}, "--header sends cookie, too"),
        ({"session_token": "x-session-id"}, "--session-header sends x-session-id, too"),
    ],
)
def test_a_token_that_would_be_sent_twice_is_refused(changes: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=f"--session-token: {says}"):
        RunSettings(**changes).checked()


def test_a_traceparent_of_the_users_is_refused_beside_those_of_the_run() -> None:
    with pytest.raises(BadInput, match="--trace: --header sends traceparent, the same with every"):
        RunSettings(trace=True, header=("Traceparent=1",)).checked()


@pytest.mark.parametrize(
    ("field", "name"), [("session_token", "content-length"), ("session_header", "Host")]
)
def test_a_header_of_every_request_cannot_name_a_session(field: str, name: str) -> None:
    with pytest.raises(
        BadInput, match=f"--{field.replace('_', '-')}: {name} is a header of every request"
    ):
        RunSettings(**{field: name}).checked()


@pytest.mark.parametrize(
    ("asked", "form"),
    [
        ({}, "block"),
        ({"brief": True}, "brief"),
        ({"full": True}, "full"),
        ({"quiet": True}, "line"),
        ({"quiet": True, "full": True}, "full"),  # without progress
        ({"quiet": True, "brief": True}, "brief"),
    ],
)
def test_a_quiet_run_prints_its_line_alone_or_the_form_that_is_asked(
    asked: dict[str, bool], form: str
) -> None:
    assert RunSettings(**asked).report_form == form


# -- the load of a server of which none is given


@pytest.mark.parametrize("given", [{}, {"backend": "openai-chat"}, {"strict": True}, {"seed": 3}])
def test_without_a_load_it_is_one_that_harms_no_server(given):
    gentle = RunSettings(base_url="http://a:1", **given).gentle()
    assert (gentle.num_prompts, gentle.max_concurrency) == (100, 8)


@pytest.mark.parametrize(
    "given",
    [
        {"request_rate": 4.0},
        {"max_concurrency": 4},
        {"num_prompts": 1000},
        {"duration": 5.0},
        {"users": 4},
        {"rate_profile": "10@5s"},
        {"concurrency_profile": "4@5s"},
        {"classes": ("a:rate=1",)},
        {"dataset_name": "trace", "dataset_path": "t.jsonl"},
        {"adapt": False},
        {"workload": "short", "num_prompts": 3},
    ],
    ids=str,
)
def test_a_load_that_is_given_stays(given):
    settings = RunSettings(base_url="http://a:1", **given)
    assert settings.gentle() == settings


@pytest.mark.parametrize(
    ("load", "count"),
    [
        ({"num_warmups": 3}, 3),
        ({"warmup": 1.5, "request_rate": 3.0}, 5),
        ({"warmup": 60.0, "request_rate": 100.0}, 256),
        ({"warmup": 60.0, "max_concurrency": 2}, 256),
    ],
)
def test_a_warm_up_by_time_has_as_many_prompts_as_it_may_need(load, count):
    assert RunSettings(**load).warmup_requests == count


def test_a_server_that_is_started_for_the_run_may_have_any_load():
    for settings in (RunSettings(engine="sim"), RunSettings(engine="vllm", model="m")):
        assert settings.gentle() == settings


@pytest.mark.parametrize("name", ["model", "max_tokens", "stream"])
def test_a_field_that_every_request_needs_is_not_omitted(name):
    with pytest.raises(BadInput, match=f"^--omit: '{name}' is no field that a request can do with"):
        RunSettings(omit=(name,)).checked()


def test_a_run_that_nobody_watches_has_limits_where_the_usual_ones_are() -> None:
    limits = {"first_token_timeout": 600.0, "stall_timeout": 60.0}
    watched = RunSettings(stall_timeout=90.0)
    unattended = watched.unattended(**limits)
    assert (unattended.first_token_timeout, unattended.stall_timeout) == (600.0, 90.0)
    whole = RunSettings(disable_stream=True).unattended(**limits)
    assert (whole.first_token_timeout, whole.stall_timeout) == (0.0, 60.0)
