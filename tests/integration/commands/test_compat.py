"""Other tools' command lines: flags keep their meaning; unsupported flags are refused in one line."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from loadgen.cli import compat
from loadgen.cli.flags import run_parser
from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.config.target import wants_engine
from loadgen.errors import BadInput
from loadgen.report.file_names import result_path
from loadgen.report.result import RunResult
from loadgen.workload.target import Target, base_url
from tests.helpers.compat_lines import read, refusal
from tests.helpers.documents import found_between
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.source import ROOT
from tests.integration.commands import migrating

# SGLang's flags that people's scripts have, and none of the releases that were read.
IN_SCRIPTS = {"--trust-remote-code"}
TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
PAGES = ROOT / "tests/data/pages"


# -- every flag of every release


@pytest.mark.parametrize("name", list(migrating.texts()))
def test_the_flags_in_the_document_are_those_of_the_parser(name: str) -> None:
    told = found_between(migrating.DOCUMENT, migrating.BEGIN.format(name), migrating.END.format(name)).strip()
    assert told == migrating.texts()[name], "python -m tests.integration.commands.migrating"


@pytest.mark.parametrize("name", list(migrating.texts()))
def test_the_document_lists_every_flag(name: str) -> None:
    had = set().union(*migrating.releases(name).values()) if name in migrating.NOTES else set(migrating.OTHERS[name])
    assert [flag for flag in sorted(had) if f"`{flag}`" not in migrating.texts()[name]] == []


def flags_of(*tools: str) -> set[str]:
    return {flag for tool in tools for flags in migrating.releases(tool).values() for flag in flags}


@pytest.mark.parametrize(("tools", "name"), [(("vllm", "vllm-rs"), None), (("sglang",), "sglang")])
def test_every_flag_exists_in_some_release_of_the_tool(tools: tuple[str, ...], name: str | None) -> None:
    had = flags_of(*tools) | IN_SCRIPTS
    assert [flag.name for flag in compat.tool_of(name).flags if flag.name not in had] == []


@pytest.mark.parametrize(("tools", "name"), [(("vllm", "vllm-rs"), None), (("sglang",), "sglang")])
def test_every_flag_of_the_tool_may_be_abbreviated(tools: tuple[str, ...], name: str | None) -> None:
    assert compat.tool_of(name).names == flags_of(*tools) | (IN_SCRIPTS if name else set())


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_refusal_gives_meaning_and_remedy(name: str | None) -> None:
    chosen = f"--compat {name} " if name else ""
    for flag in compat.tool_of(name).flags:
        if flag.convert is None:
            value = "" if flag.values == "none" else " 7"
            assert refusal(f"{chosen}--model m {flag.name}{value}") == f"{flag.name}: {flag.meaning}; {flag.remedy}"


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_flags_of_other_tools_are_not_in_the_help(name: str | None) -> None:
    text = run_parser(name).format_help()
    ours = {flag.name for flag in compat.tool_of(name).flags} - set(run_parser()._option_string_actions)
    assert [flag for flag in ours if re.search(rf"  {flag}(?![\w-])", text)] == []


def words_in(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_remedies_name_existing_flags(name: str | None) -> None:
    known = {*run_parser(None)._option_string_actions, *run_parser(name)._option_string_actions}
    for flag in compat.tool_of(name).flags:
        assert [word for word in words_in(flag.remedy) if word not in known] == [], flag.name


@pytest.mark.parametrize("name", ["guidellm", "aiperf"])
def test_meanings_name_existing_flags(name: str) -> None:
    here = migrating.OTHERS[name].values()
    named = {word for text in here for quoted in re.findall("`([^`]*)`", text) for word in words_in(quoted)}
    assert named <= set(run_parser()._option_string_actions)


# -- calls to the server

SGLANG = "--compat sglang --model m"


def test_the_profiler_of_vllm_is_a_setting() -> None:
    assert read("--model m --profile").profile
    busy = read("--model m --profile --profile-batch-threshold 32 --profile-duration 2")
    assert (busy.profile_batch_threshold, busy.profile_duration) == (32, 2.0)


def test_sglangs_flags_of_the_profiler_are_fields_of_its_request(tmp_path: Path) -> None:
    said = f"--profile-activities CPU GPU --profile-start-step 3 --profile-prefix a --profile-output-dir {tmp_path}/"
    settings = read(f"{SGLANG} --profile {said} --profile-stages prefill decode")
    assert settings.profile_body == {
        "activities": ["CPU", "GPU"],
        "start_step": 3,
        "profile_prefix": "a",
        "output_dir": str(tmp_path),
        "profile_stages": ["prefill", "decode"],
    }
    workers = read(f"{SGLANG} --profile --profile-prefill-url http://a:1 http://b:1")
    assert workers.profile_url == ("http://a:1", "http://b:1")


@pytest.mark.parametrize(
    ("said", "steps"),
    [("", 5), (" --profile-num-steps 9", 9), (" --profile-steps 9", 9)],
)
def test_sglang_profiles_five_steps_by_stage_unless_told_otherwise(said: str, steps: int) -> None:
    body = read(f"{SGLANG} --profile{said} --profile-by-stage{said}").profile_body
    assert body == {"num_steps": steps, "profile_by_stage": True}


def test_what_to_profile_without_a_profile_is_refused() -> None:
    assert refusal(f"{SGLANG} --profile-num-steps 5").startswith("--profile: missing")
    assert refusal("--model m --profile --profile-duration 2").startswith("--profile-duration: given without")
    off = "--profile --profile-batch-threshold 2 --server-metrics off"
    assert refusal(f"--model m {off}").startswith("--profile-batch-threshold: needs the server's metrics")


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("--flush-cache", "/flush_cache?timeout=60"),
        ("--flush-cache-timeout 5 --flush-cache --backend sglang-oai", "/flush_cache?timeout=5"),
        ("--flush-cache --backend vllm-chat", "/reset_prefix_cache"),
        ("--flush-cache --backend lmdeploy", "/flush_cache"),
    ],
)
def test_sglang_empties_the_cache_as_the_backend_does(said: str, path: str) -> None:
    assert read(f"{SGLANG} {said}").call_before == (path,)


def test_no_cache_is_emptied_by_its_timeout_alone() -> None:
    assert read(f"{SGLANG} --flush-cache-timeout 5").call_before == ()


def test_the_prefix_cache_of_vllm_is_emptied_before_the_run() -> None:
    assert read("--model m --reset-prefix-cache").call_before == ("/reset_prefix_cache",)


@pytest.mark.parametrize("path", ["reset", "/a b", "http://a/reset"])
def test_a_call_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadInput, match="is not a path"):
        RunSettings(call_before=(path,)).checked()


# -- vLLM


def test_a_flag_of_vllm_that_is_another_one_here() -> None:
    settings = read("--model m --input-len 70 --output-len 9 --endpoint-type openai-chat --tokenizer-mode hf")
    lengths = {name: value for name, value in vars(settings).items() if name.endswith("_output_len")}
    assert settings.random_input_len == 70
    assert set(lengths.values()) == {9}, lengths
    assert settings.backend == "openai-chat"


def test_logprobs_are_asked_of_completions_alone() -> None:
    assert read("--model m --logprobs 2").extra_body == {"logprobs": 2}
    assert read("--model m --logprobs 2 --backend openai-chat").extra_body is None
    assert read('--model m --logprobs 2 --extra-body {"top_n":1}').extra_body == {"logprobs": 2, "top_n": 1}


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
        settings = read(f"--compat {tool} --model m --dataset-name sharegpt --dataset-path f {flags}")
        return Target.from_settings(settings, "m").fields

    always = {"repetition_penalty": 1.0, "logprobs": None} | ({"temperature": 0.0} if tool == "vllm-0.11" else {})
    assert fields("") == always
    assert fields("--engine sim") == always
    assert fields("--repetition-penalty 1.1 --logprobs 3") == always | {"repetition_penalty": 1.1, "logprobs": 3}
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
    assert line.startswith(f"--extra-body: {refused} would replace the output length of every request; ")
    assert "--random-output-len" in line


def test_a_field_beside_that_of_the_output_length_is_sent() -> None:
    assert read('--model m --backend openai-chat --extra-body {"max_tokens":2}').extra_body == {"max_tokens": 2}


def test_a_tokenizer_mode_has_no_effect_where_there_is_a_tokenizer_json(capsys: pytest.CaptureFixture[str]) -> None:
    line = "--model m --tokenizer-mode deepseek_v4 --tokenizer"
    assert read(f"{line} {TOKENIZER.parent}") == read(f"--model m --tokenizer {TOKENIZER.parent}")
    assert capsys.readouterr().err == f"loadgen: --tokenizer-mode deepseek_v4 has no effect: {TOKENIZER} is used\n"
    assert refusal(f"{line} no/such-model").startswith("--tokenizer-mode: 'deepseek_v4' does not use a tokenizer.json")


def test_without_compat_completions_have_no_fields_that_were_not_asked_for() -> None:
    settings = read("--model m --backend openai --dataset-name sharegpt --dataset-path f")
    assert Target.from_settings(settings, "m").fields == {}


@pytest.mark.parametrize("flag", ["", "--skip-chat-template"])
def test_without_compat_prompts_are_sent_as_they_are(flag: str) -> None:
    assert read(f"--model m --dataset-name custom --dataset-path f {flag}").dataset_name == "custom"


@pytest.mark.parametrize("flag", ["--trust-remote-code", "--use-beam-search", "--no-stream", "--skip-tokenizer-init"])
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
    assert b"\r\nX-Request-Id: job7-ab%d\r\n" in Target.from_settings(settings, "m").head("ab")
    with pytest.raises(BadInput, match="--request-id-prefix: 'a b' contains characters"):
        RunSettings(request_id_prefix="a b").checked()


@pytest.mark.parametrize(
    ("flags", "implied"),
    [
        ("", {"temperature": None, "ignore_eos": True, "latency_from": "due", "dataset_rule": None}),
        ("--compat vllm-0.33", {"temperature": None, "ignore_eos": True, "latency_from": "sent", "dataset_rule": None}),
        (
            "--compat vllm-0.11",
            {"temperature": 0.0, "ignore_eos": False, "dataset_rule": "vllm-0.11", "ready_check_timeout_sec": 600.0},
        ),
        ("--compat vllm-0.11 --temperature 0.7 --ignore-eos", {"temperature": 0.7, "ignore_eos": True}),
        ("", {"warmup_prompt": "other"}),
        ("--compat vllm-0.11", {"warmup_prompt": "first"}),
        ("--compat vllm-0.33", {"warmup_prompt": "first"}),
        ("--compat vllm-0.33 --warmup-prompt other", {"warmup_prompt": "other"}),
        ("--compat vllm-0.11 --dataset-name prefix_repetition", {"dataset_rule": None, "ignore_eos": False}),
    ],
)
def test_release_defaults_are_applied(flags: str, implied: dict[str, Any]) -> None:
    settings = read(f"--model m {flags}")
    assert {name: getattr(settings, name) for name in implied} == implied


def test_with_compat_no_server_named_is_vllms_own_address_and_not_the_simulator() -> None:
    assert wants_engine(read(""))
    settings = read("--compat vllm-0.32")
    assert not wants_engine(settings)
    assert base_url(settings) == "http://127.0.0.1:8000"
    assert base_url(read("--compat vllm-0.32 --base-url http://a:1")) == "http://a:1"


# -- who wins: a flag, the file, the workload, what the tool takes for granted

WRITTEN = {
    "backend": "openai-chat",
    "port": 9,
    "seed": 7,
    "temperature": 0.5,
    "ignore_eos": True,
    "num_warmups": 2,
    "latency_from": "due",
    "ready_check_timeout_sec": 1.0,
    "dataset_name": "prose",
}


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    def written(text: str) -> str:
        (tmp_path / "run.yaml").write_text(text)
        return str(tmp_path / "run.yaml")

    return written


def chosen(settings: RunSettings, said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in said}


@pytest.mark.parametrize("tool", compat.TOOLS)
@pytest.mark.parametrize("workload", presets.PRESETS)
def test_a_workload_is_what_it_is_with_every_tool(tool: str, workload: str) -> None:
    said = presets.PRESETS[workload]
    assert chosen(read(f"--compat {tool} --workload {workload}"), said) == said


@pytest.mark.parametrize("tool", compat.TOOLS)
def test_file_settings_override_the_tools_defaults(tool: str, write: Callable[[str], str]) -> None:
    path = write("\n".join(f"{name}: {value}" for name, value in WRITTEN.items()))
    assert chosen(read(f"--compat {tool} --config {path}"), WRITTEN) == WRITTEN
    assert read(f"--compat {tool} --config {path} --seed 8").seed == 8


@pytest.mark.parametrize("tool", compat.TOOLS)
def test_a_workload_that_a_file_names_is_known_to_every_tool(tool: str, write: Callable[[str], str]) -> None:
    named = read(f"--compat {tool} --config {write('workload: medium')}")
    assert named == read(f"--compat {tool} --workload medium")


@pytest.mark.parametrize(
    ("text", "flags", "made"),
    [
        ("random_input_len: 100", "sglang --dataset-name random", {"random_input_len": "1:100"}),
        ("random_range_ratio: 0.5", "sglang --dataset-name random", {"random_input_len": "512:1024"}),
        ("random_input_len: 100", "sglang --workload short --random-range-ratio 0.5", {"random_input_len": "50:100"}),
        ("dataset_name: prefix_repetition\nprefix_repetition_num_prefixes: 4", "sglang", {"num_prompts": 64}),
        ("port: 9", "sglang --backend vllm", {"backend": "openai", "port": 9}),
        ("base_url: http://a:1", "sglang --backend vllm", {"host": None, "port": None}),
        ("base_url: http://a:1", "vllm-0.32", {"host": None}),
        ("dataset_name: prose", "vllm-0.11", {"dataset_rule": None}),
        ("backend: openai-chat", "vllm-0.11 --logprobs 2", {"extra_body": None}),
        ("random_input_len: 100", "vllm-0.33 --input-len 70", {"random_input_len": 70}),
    ],
)
def test_a_tool_knows_what_a_file_says(
    text: str, flags: str, made: dict[str, Any], write: Callable[[str], str]
) -> None:
    assert chosen(read(f"--config {write(text)} --compat {flags}"), made) == made


def test_a_ratio_of_a_file_that_sglang_cannot_read_is_refused(write: Callable[[str], str]) -> None:
    said = refusal(f"--compat sglang --config {write('random_range_ratio: half')}")
    assert said.startswith("--random-range-ratio: half ")


# -- the pages


def commands() -> list[tuple[str, str]]:
    """Every `vllm bench serve` that a page prints: the page, and its flags."""
    found = []
    for page in sorted(PAGES.glob("qwen*.md")):
        for line in page.read_text().splitlines():
            begin, serve, flags = line.partition("vllm bench serve ")
            if serve and not begin.strip():
                found.append((page.stem, flags.strip()))
    return found


def test_four_pages_print_commands() -> None:
    assert len(commands()) == 8
    assert len({page for page, _ in commands()}) == 4


@pytest.mark.parametrize("compat_flags", ["", "--compat vllm-0.11 "])
@pytest.mark.parametrize(("page", "flags"), commands())
def test_the_pages_commands_run_with_three_words_replaced(page: str, flags: str, compat_flags: str) -> None:
    settings = read(compat_flags + flags)
    assert base_url(settings) == "http://127.0.0.1:8000"
    assert not wants_engine(settings)
    assert settings.backend == "openai-chat"
    assert Target.from_settings(settings, "m").url == "http://127.0.0.1:8000/v1/chat/completions"
    if "random" in flags:
        assert (settings.random_input_len, settings.random_output_len, settings.num_prompts) == (4000, 200, 500)
        assert settings.seed == 42
    else:
        assert (settings.dataset_name, settings.num_prompts) == ("sharegpt", 1000)
    if compat_flags:
        assert settings.dataset_rule == "vllm-0.11"
        assert Target.from_settings(settings, "m").fields == {"temperature": 0.0}


def test_vllm_reads_no_file_for_random_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    assert read("--model m --dataset-path x.json").dataset_path is None
    assert capsys.readouterr().err == "loadgen: --dataset-path has no effect on random prompts, as in vLLM\n"


# -- words of others


@pytest.mark.parametrize(
    ("flag", "parts"),
    [
        ("--warmup-requests", ("SGLang", "--compat sglang")),
        ("--target", ("guidellm", "--base-url")),
        ("--streaming", ("AIPerf", "leave it out")),
        ("--dataset", ("an older vLLM", "--dataset-name sharegpt --dataset-path FILE")),
        ("--concurrency", ("AIPerf", "--max-concurrency")),
        ("--users", ("other tools", "--max-concurrency")),
        ("--bogus", ("see `loadgen run --help`",)),
        ("--max-concurency", ("did you mean --max-concurrency?",)),
    ],
)
def test_a_flag_of_another_tool_is_named_with_ours(flag: str, parts: tuple[str, ...]) -> None:
    refused = refusal(f"{flag} 3")
    assert refused.startswith(f"{flag}: ")
    assert [part for part in parts if part not in refused] == []


@pytest.mark.parametrize("said", ["--rate-type constant", "--rate-type=sweep", "--profile constant", "--profile=sweep"])
def test_guidellms_profiles_are_refused_with_what_asks_for_them_here(said: str) -> None:
    line = refusal(said).replace("`", "")
    assert "constant is --request-rate R --burstiness inf" in line
    assert "sweep is --request-rate R,R,R, or loadgen search" in line
