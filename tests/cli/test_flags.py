"""Flags: one for every setting, spelled as in `vllm bench serve`; invalid ones are refused."""

import dataclasses
import math
import typing

import pytest

from loadgen.cli.flags import parse, run_parser, run_settings
from loadgen.cli.run_settings import settings as settings_of
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.util.argument_parser import OneLineParser

FIELDS = {field.name: field for field in dataclasses.fields(RunSettings)}
KINDS = typing.get_type_hints(RunSettings)


def sample(name):
    """What to write after a flag, and the value that it makes."""
    if name == "base_url":
        return ["http://a", flag(name), "http://b"], ("http://a", "http://b")
    kinds = [kind for kind in typing.get_args(KINDS[name]) if kind is not type(None)] or [
        KINDS[name]
    ]
    kind = (
        kinds[0]
        if typing.get_origin(KINDS[name]) not in (tuple, dict, typing.Literal)
        else KINDS[name]
    )
    if typing.get_origin(kind) is typing.Literal:
        word = typing.get_args(kind)[-1]
        return [word], word
    if typing.get_origin(kind) is tuple:
        return ["a=1", "b=2"], ("a=1", "b=2")
    if typing.get_origin(kind) is dict:
        return ['{"a": [1]}'], {"a": [1]}
    return {bool: ([], True), int: (["7"], 7), float: (["2.5"], 2.5), str: (["word"], "word")}[kind]


# -- every setting


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_has_its_flag(name):
    words, value = sample(name)
    values = parse([flag(name), *words])
    assert values == {name: value}
    assert type(values[name]) is type(value)


@pytest.fixture(scope="module")
def parser():
    return run_parser()


@pytest.mark.parametrize("name", FIELDS)
def test_every_flag_stands_in_the_help_with_its_text(parser, name):
    help_text = parser.topic(flag(name))
    assert f"  {flag(name)}" in help_text
    assert " ".join(FIELDS[name].metadata["option"].help.split()) in " ".join(help_text.split())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("30s", 30), ("2m", 120), ("2 min", 120), ("1.5h", 5400), ("500ms", 0.5)],
)
def test_a_time_may_have_a_unit_and_is_seconds_without(text, seconds):
    for name in ("duration", "timeout", "first_token_timeout", "ready_check_timeout_sec"):
        assert parse([flag(name), text]) == {name: seconds}


def test_only_what_was_given_is_returned():
    assert parse([]) == {}
    assert parse(["--seed", "0"]) == {"seed": 0}


def test_defaults_are_shown_in_the_help():
    text = " ".join(run_parser().topic("connections").split())
    assert "seconds to open a connection (60)" in text
    text = " ".join(run_parser().format_help().split())
    assert "or @FILE with a list (1024)" in text


# -- spelling


def test_rate_is_short_for_request_rate():
    assert parse(["--rate", "5"]) == parse(["--request-rate", "5"]) == {"request_rate": 5.0}


def test_underscores_are_read_as_dashes_in_names_and_left_alone_in_values():
    assert parse(["--max_concurrency", "3"]) == {"max_concurrency": 3}
    assert parse(["--dataset_name=my_data"]) == {"dataset_name": "my_data"}
    assert parse(["--metadata", "a_b=c_d"]) == {"metadata": ("a_b=c_d",)}


ABBREVIATED = [
    (["--random-input", "64"], {"random_input_len": 64}),
    (["--random_output=16"], {"random_output_len": 16}),
    (["--num-prompt", "4"], {"num_prompts": 4}),
    (["--result-file", "x"], {"result_filename": "x"}),
    (["--max-conc=3"], {"max_concurrency": 3}),
]


@pytest.mark.parametrize(("argv", "settings"), ABBREVIATED)
def test_a_flag_of_a_tool_may_be_abbreviated_with_its_compat_as_argparse_takes_it(argv, settings):
    given = run_settings(["--compat", "vllm-0.33", *argv])
    assert given == {"compat": "vllm-0.33"} | settings


def test_an_abbreviation_of_several_flags_is_refused():
    problem = "--random-batch-size, --random-input-len and [0-9]+ more begin with it"
    with pytest.raises(BadInput, match=problem):
        run_settings(["--compat", "vllm-0.33", "--random", "3"])


@pytest.mark.parametrize(("argv", "settings"), ABBREVIATED[:3])
def test_shortened_names_of_many_published_commands_are_known_without_compat(argv, settings):
    assert settings.items() <= vars(settings_of(run_settings(argv))).items()


@pytest.mark.parametrize("argv", [argv for argv, _ in ABBREVIATED[3:]])
def test_other_flags_are_spelled_out_without_compat(argv):
    with pytest.raises(BadInput, match="unknown; did you mean --"):
        parse(argv)


def test_a_file_for_the_result_is_not_taken_for_a_length():
    with pytest.raises(
        BadInput, match="--output: unknown; this is a flag of guidellm, --save-result"
    ):
        run_settings(["--output", "result.json"])


def test_the_last_of_two_equal_flags_counts():
    assert parse(["--seed", "1", "--seed", "2", "--num-prompts", "3", "--num-prompts=4"]) == {
        "seed": 2,
        "num_prompts": 4,
    }


def test_flags_of_sglang_may_be_abbreviated_with_its_meaning():
    given = run_settings(
        ["--compat", "sglang", "--random-input", "64", "--num-prompt", "4", "--warmup", "2"]
    )
    assert (given["random_input_len"], given["num_prompts"]) == (64, 4)
    assert [(each.name, value) for each, value in given["tool_flags"]] == [("--warmup-requests", 2)]


def test_a_value_may_follow_an_equals_sign():
    assert parse(["--rate=5", "--slo=ttft_p99<=5ms"]) == {
        "request_rate": 5.0,
        "slo": "ttft_p99<=5ms",
    }


def test_rates_may_be_infinite_and_negative_numbers_are_left_to_the_check():
    assert parse(["--rate", "inf", "--burstiness", "inf"]) == {
        "request_rate": math.inf,
        "burstiness": math.inf,
    }
    assert parse(["--rate", "-5"]) == {"request_rate": -5.0}


def test_a_length_is_a_number_where_it_reads_as_one_and_else_a_text():
    assert parse(["--random-input-len", "7", "--random-output-len", "1:9"]) == {
        "random_input_len": 7,
        "random_output_len": "1:9",
    }


def test_several_values_follow_one_flag():
    assert parse(["--goodput", "ttft:200", "tpot:50", "--seed", "1"])["goodput"] == (
        "ttft:200",
        "tpot:50",
    )


def test_a_config_file_stands_beside_the_settings():
    assert parse(["--config", "x.yaml", "--seed", "1"]) == {"config": "x.yaml", "seed": 1}


# -- what is refused


# None that is refused.
@pytest.mark.parametrize(
    ("argv", "field", "says"),
    [
        (["--speed", "3"], "--speed", "unknown"),
        (["--max-concurency", "3"], "--max-concurency", "did you mean --max-concurrency?"),
        (["--random", "3"], "--random", "did you mean --random-input-len?"),
        (["--use-chat"], "--use-chat", "see `loadgen run --help`"),  # not --skip-chat-template
        (["--bfcl-category", "x"], "--bfcl-category", "see `loadgen run --help`"),
        (["--vus", "10"], "--vus", "see `loadgen run --help`"),
        (["--max_concurency=3"], "--max-concurency", "did you mean --max-concurrency?"),
        (["stray"], "stray", "unknown"),
        (["--num-prompts", "many"], "--num-prompts", "'many' is not a whole number"),
        (["--num-prompts", "1.5"], "--num-prompts", "'1.5' is not a whole number"),
        (["--rate", "fast"], "--request-rate", "'fast' is not a number"),
        (["--rate", "1e400"], "--request-rate", "'1e400' is too large"),
        (["--duration", "30 parsecs"], "--duration", "'30 parsecs' is not a time"),
        (["--rate"], "--request-rate", "expected one argument"),
        (["--extra-body", "{"], "--extra-body", "is not valid JSON"),
        (["--latency-from", "first"], "--latency-from", "'due'"),
        (["--quiet=yes"], "--quiet", "ignored explicit argument 'yes'"),
    ],
)
def test_invalid_flag_or_value_is_refused_in_one_line(argv, field, says):
    with pytest.raises(BadInput) as caught:
        parse(argv)
    assert caught.value.field.split("/")[0] == field
    assert says in str(caught.value)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_the_value_of_an_unknown_flag_is_not_repeated_it_may_be_a_secret():
    for argv in (["--api-kye", "hunter2"], ["--api-kye=hunter2"]):
        with pytest.raises(BadInput) as caught:
            parse(argv)
        assert "hunter2" not in str(caught.value)


def test_a_missing_argument_is_refused_in_one_line_too():
    parser = OneLineParser(prog="loadgen report")
    parser.add_argument("file", metavar="FILE")
    with pytest.raises(BadInput, match="required: FILE; see `loadgen report --help`"):
        parser.parse_args([])


# -- several


def test_rates_and_concurrencies_may_be_several():
    assert parse(["--request-rate", "1,2.5,inf"]) == {"request_rate": (1.0, 2.5, math.inf)}
    assert parse(["--max-concurrency", "1,2"]) == {"max_concurrency": (1, 2)}


@pytest.mark.parametrize("text", ["1,", ",1", "1,,2", "1,x", "1;2"])
def test_invalid_list_of_numbers_is_refused(text):
    with pytest.raises(BadInput) as refused:
        parse(["--rate", text])
    assert "is not a number" in refused.value.problem


def test_an_slo_given_again_adds_its_limits():
    assert parse(["--slo", "ttft_p99<1ms", "--slo", "error_rate<1%"]) == {
        "slo": "ttft_p99<1ms,error_rate<1%"
    }


@pytest.mark.parametrize("second", ["tpot_p99<50ms", "tpot<50ms"])
def test_limits_of_an_slo_in_several_words_are_told_how_to_be_written(second):
    with pytest.raises(BadInput) as refused:
        run_settings(["--slo", "ttft_p99<500ms", second])
    assert refused.value.remedy == f'separate limits with commas: --slo "ttft_p99<500ms,{second}"'


@pytest.mark.parametrize(("text", "share"), [("0.01", 0.01), ("1%", 0.01), ("2.5 %", 0.025)])
def test_a_share_is_a_number_or_a_percentage(text, share):
    assert parse(["--max-error-rate", text]) == {"max_error_rate": share}


def test_what_is_no_share_is_refused():
    with pytest.raises(BadInput) as refused:
        parse(["--max-error-rate", "few"])
    assert (
        str(refused.value) == "--max-error-rate: 'few' is not a share; write for example 0.05 or 5%"
    )


@pytest.mark.parametrize(
    ("name", "text"), [("--max-think-time", "500ms"), ("--trace-time-unit", "1ms")]
)
def test_times_of_data_sets_have_units_as_all_times(name, text):
    assert next(iter(parse([name, text]).values())) == pytest.approx(
        float(text.removesuffix("ms")) / 1000
    )


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("stop_when", ["ttft_p99>2s", "errors>100"]),
        ("retry", ["429", "503"]),
        ("rate_profile", ["10@60s", "20@60s"]),
        ("concurrency_profile", ["10@60s", "20@60s"]),
    ],
)
def test_parts_of_a_list_may_be_in_several_flags(name, parts):
    assert parse([word for part in parts for word in (flag(name), part)]) == {name: ",".join(parts)}


@pytest.mark.parametrize("flag", ["--vus", "--connections"])
def test_the_users_of_other_load_generators_are_requests_in_flight(flag):
    with pytest.raises(BadInput) as refused:
        run_settings([flag, "10"])
    assert "--max-concurrency" in refused.value.remedy
