"""Command lines of vLLM: its flags and defaults keep their meaning, release by release."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from loadgen.cli import compat
from loadgen.config.settings import RunSettings
from loadgen.config.target import check_server
from loadgen.errors import BadInput
from loadgen.report.files import result_path
from loadgen.report.result import RunResult
from loadgen.workload.target import Target, base_url
from tests.helpers.compat_lines import read, refusal
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.source import ROOT

# SGLang's flags that people's scripts have, and none of the releases that were read.
IN_SCRIPTS = {"--trust-remote-code"}
TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
PAGES = ROOT / "tests/data/pages"


def test_a_flag_of_vllm_that_is_another_one_here() -> None:
    settings = read(
        "--model m --input-len 70 --output-len 9 --endpoint-type openai-chat --tokenizer-mode hf"
    )
    lengths = {
        name: value for name, value in vars(settings).items() if name.endswith("_output_len")
    }
    assert settings.random_input_len == 70
    assert set(lengths.values()) == {9}, lengths
    assert settings.backend == "openai-chat"


def test_logprobs_are_asked_of_completions_alone() -> None:
    assert read("--model m --logprobs 2").extra_body == {"logprobs": 2}
    assert read("--model m --logprobs 2 --backend openai-chat").extra_body is None
    assert read('--model m --logprobs 2 --extra-body {"top_n":1}').extra_body == {
        "logprobs": 2,
        "top_n": 1,
    }


RELEASES = [name for name in compat.TOOLS if name.startswith("vllm")]


@pytest.mark.parametrize("tool", RELEASES)
@pytest.mark.parametrize("name", ["custom", "sonnet"])
def test_vllm_renders_the_chat_template_itself_unless_told_not_to(tool: str, name: str) -> None:
    line = f"--compat {tool} --model m --dataset-name {name} --dataset-path f"
    assert read(line).render_chat_template == "whole"
    assert read(f"{line} --skip-chat-template").render_chat_template is None
    assert read(f"{line} --custom-skip-chat-template").render_chat_template is None


@pytest.mark.parametrize("tool", RELEASES)
def test_vllm_renders_chats_of_custom_twice_and_counts_the_template_of_sonnet(tool: str) -> None:
    line = f"--compat {tool} --model m --dataset-path f --backend openai-chat --dataset-name"
    assert read(f"{line} custom").render_chat_template == "whole"
    assert read(f"{line} sonnet").render_chat_template is None
    assert read(f"{line} sonnet").input_len_counts == "server"


@pytest.mark.parametrize("tool", RELEASES)
def test_completions_have_the_fields_that_vllm_always_sends(tool: str) -> None:
    def fields(flags: str) -> dict[str, Any]:
        settings = read(
            f"--compat {tool} --model m --dataset-name sharegpt --dataset-path f {flags}"
        )
        return Target.from_settings(settings, "m").fields

    always = {"repetition_penalty": 1.0, "logprobs": None} | (
        {"temperature": 0.0} if tool == "vllm-0.11" else {}
    )
    assert fields("") == always
    assert fields("--engine sim") == always
    assert fields("--repetition-penalty 1.1 --logprobs 3") == always | {
        "repetition_penalty": 1.1,
        "logprobs": 3,
    }
    assert fields('--extra-body {"repetition_penalty":2}') == always | {"repetition_penalty": 2}
    assert not read(f"--compat {tool} --model m").content_parts
    for chat in ("--backend openai-chat", "--endpoint /v1/chat/completions"):
        assert read(f"--compat {tool} --model m {chat}").content_parts
        assert fields(chat) == ({"temperature": 0.0} if tool == "vllm-0.11" else {})


@pytest.mark.parametrize(
    ("flags", "refused"),
    [
        ('--extra-body {"max_tokens":2}', "max_tokens"),
        ('--backend openai-chat --extra-body {"max_completion_tokens":2}', "max_completion_tokens"),
    ],
)
def test_an_output_length_is_that_of_the_data_set(flags: str, refused: str) -> None:
    line = refusal(f"--model m {flags}")
    assert line.startswith(
        f"--extra-body: {refused} would replace the output length that is asked; "
    )
    assert "--random-output-len" in line


def test_a_field_beside_that_of_the_output_length_is_sent() -> None:
    assert read('--model m --backend openai-chat --extra-body {"max_tokens":2}').extra_body == {
        "max_tokens": 2
    }


def test_a_tokenizer_mode_has_no_effect_where_there_is_a_tokenizer_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = "--model m --tokenizer-mode deepseek_v4 --tokenizer"
    assert read(f"{line} {TOKENIZER.parent}") == read(f"--model m --tokenizer {TOKENIZER.parent}")
    assert (
        capsys.readouterr().err
        == f"loadgen: --tokenizer-mode deepseek_v4 has no effect: {TOKENIZER} is used\n"
    )
    assert refusal(f"{line} no/such-model").startswith(
        "--tokenizer-mode: 'deepseek_v4' does not use a tokenizer.json"
    )


def test_without_compat_completions_have_no_fields_that_were_not_asked_for() -> None:
    settings = read("--model m --backend openai --dataset-name sharegpt --dataset-path f")
    assert Target.from_settings(settings, "m").fields == {}


@pytest.mark.parametrize("flag", ["", "--skip-chat-template"])
def test_without_compat_prompts_are_sent_as_they_are(flag: str) -> None:
    assert read(f"--model m --dataset-name custom --dataset-path f {flag}").dataset_name == "custom"


@pytest.mark.parametrize(
    "flag", ["--trust-remote-code", "--use-beam-search", "--no-stream", "--skip-tokenizer-init"]
)
def test_flag_with_a_neutral_value_changes_no_setting(flag: str) -> None:
    assert read(f"--model m {flag}") == read("--model m")


@pytest.mark.parametrize("harmless", ["--random-batch-size 1", "--probe-request-rate 0"])
def test_refused_flag_is_accepted_with_a_neutral_value(harmless: str) -> None:
    assert read(f"--model m {harmless}") == read("--model m")


def test_the_label_is_kept_and_begins_the_name_of_the_file(tmp_path: Path) -> None:
    settings = read(f"--model m --label mine/x --result-dir {tmp_path}")
    numbers = RunResult.from_dict(result(measured([steady()]), settings)).numbers
    named = structs.replace(numbers, backend="openai", model_id="a/m", date="D")
    assert result_path(settings, named) == tmp_path / "mine_x-infqps-m-D.json"


def test_requests_are_named_as_asked() -> None:
    settings = read("--model m --request-id-prefix job7-")
    head = Target.from_settings(settings, "m").head("ab")
    assert head.endswith(b"\r\nX-Request-Id: job7-ab")
    with pytest.raises(BadInput, match="--request-id-prefix: 'a b' contains characters"):
        RunSettings(request_id_prefix="a b").checked()


@pytest.mark.parametrize(
    ("flags", "implied"),
    [
        (
            "",
            {"temperature": None, "ignore_eos": True, "latency_from": "due", "dataset_rule": None},
        ),
        (
            "--compat vllm-0.33",
            {"temperature": None, "ignore_eos": True, "latency_from": "sent", "dataset_rule": None},
        ),
        (
            "--compat vllm-0.11",
            {
                "temperature": 0.0,
                "ignore_eos": False,
                "dataset_rule": "vllm-0.11",
                "ready_check_timeout_sec": 600.0,
            },
        ),
        (
            "--compat vllm-0.11 --temperature 0.7 --ignore-eos",
            {"temperature": 0.7, "ignore_eos": True},
        ),
        ("", {"warmup_prompt": "other"}),
        ("--compat vllm-0.11", {"warmup_prompt": "first"}),
        ("--compat vllm-0.33", {"warmup_prompt": "first"}),
        ("--compat vllm-0.33 --warmup-prompt other", {"warmup_prompt": "other"}),
        (
            "--compat vllm-0.11 --dataset-name prefix_repetition",
            {"dataset_rule": None, "ignore_eos": False},
        ),
    ],
)
def test_release_defaults_are_applied(flags: str, implied: dict[str, Any]) -> None:
    settings = read(f"--model m {flags}")
    assert {name: getattr(settings, name) for name in implied} == implied


def test_with_compat_no_server_named_is_vllms_own_address_and_else_an_error() -> None:
    with pytest.raises(BadInput, match="no server is named"):
        check_server(read(""))
    settings = read("--compat vllm-0.32")
    check_server(settings)
    assert base_url(settings) == "http://127.0.0.1:8000"
    assert base_url(read("--compat vllm-0.32 --base-url http://a:1")) == "http://a:1"


@pytest.mark.parametrize(
    ("flags", "page"),
    [
        ("--plot-timeline", "vllm.timeline.html"),
        (
            "--plot-timeline --save-result --result-filename a.json --result-dir out",
            "out/a.timeline.html",
        ),
        ("--plot-timeline --html b.html --compat vllm-0.33", "b.html"),
    ],
)
def test_timeline_is_the_page_of_the_run(flags: str, page: str) -> None:
    assert read(f"--model m {flags}").html == page
