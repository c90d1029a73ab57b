"""Other tools' command lines: flags keep their meaning; unsupported flags are refused in one
line.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import compat
from loadgen.cli.compat import vllm
from loadgen.cli.flags import run_parser
from loadgen.cli.translate import TOOLS
from loadgen.config import presets
from loadgen.config.settings import RunSettings
from loadgen.config.target import check_server
from loadgen.workload.target import Target, base_url
from tests.helpers.compat_lines import read, refusal
from tests.helpers.documents import found_between
from tests.helpers.source import ROOT
from tests.integration.commands import migrating

# SGLang's flags that people's scripts have, and none of the releases that were read.
# Names of vLLM's flags as many published commands shorten them.
SHORTENED = {flag.name for flag in vllm.SHORTENED_FLAGS}
IN_SCRIPTS = {"--trust-remote-code", "--gsp-prewarm-prefixes", "--gsp-prewarm-concurrency"}
TOKENIZER = ROOT / "engines" / "sim" / "tokenizer.json"
PAGES = ROOT / "tests/data/pages"


# -- every flag of every release


@pytest.mark.parametrize("name", list(migrating.texts()))
def test_the_flags_in_the_document_are_those_of_the_parser(name: str) -> None:
    told = found_between(
        migrating.DOCUMENT, migrating.BEGIN.format(name), migrating.END.format(name)
    ).strip()
    assert told == migrating.texts()[name], "python -m tests.integration.commands.migrating"


@pytest.mark.parametrize("name", list(migrating.texts()))
def test_the_document_lists_every_flag(name: str) -> None:
    if not (migrating.DATA / f"{name}.json").exists():  # settings of files, in the table alone
        return
    had = set().union(*migrating.releases(name).values())
    if name in migrating.NOTES:  # those that mean the same as with vLLM are listed there alone
        had -= set().union(*migrating.releases("vllm").values())
    assert [flag for flag in sorted(had) if f"`{flag}`" not in migrating.texts()[name]] == []


def test_the_document_lists_every_flag_of_vllm() -> None:
    had = set().union(*migrating.releases("vllm").values())
    assert [flag for flag in sorted(had) if f"`{flag}`" not in migrating.texts()["vllm"]] == []


@pytest.mark.parametrize("name", list(migrating.MEANINGS))
def test_a_meaning_is_that_of_an_accepted_flag(name: str | None) -> None:
    accepted = {flag.name for flag in compat.tool_of(name).flags if flag.convert is not None}
    accepted -= SHORTENED
    shared = {} if name != "inferencex" else migrating.MEANINGS[None]  # it has most of vLLM's
    assert accepted <= migrating.MEANINGS[name].keys() <= accepted | shared.keys()


def flags_of(*tools: str) -> set[str]:
    return {flag for tool in tools for flags in migrating.releases(tool).values() for flag in flags}


@pytest.mark.parametrize(("tools", "name"), [(("vllm", "vllm-rs"), None), (("sglang",), "sglang")])
def test_every_flag_exists_in_some_release_of_the_tool(
    tools: tuple[str, ...], name: str | None
) -> None:
    had = flags_of(*tools) | IN_SCRIPTS | SHORTENED
    assert [flag.name for flag in compat.tool_of(name).flags if flag.name not in had] == []


@pytest.mark.parametrize(("tools", "name"), [(("vllm", "vllm-rs"), None), (("sglang",), "sglang")])
def test_every_flag_of_the_tool_may_be_abbreviated(
    tools: tuple[str, ...], name: str | None
) -> None:
    others = IN_SCRIPTS if name else SHORTENED
    assert compat.tool_of(name).names == flags_of(*tools) | others


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_refusal_gives_meaning_and_remedy(name: str | None) -> None:
    chosen = f"--compat {name} " if name else ""
    for flag in compat.tool_of(name).flags:
        if flag.convert is None:
            value = "" if flag.values == "none" else " 7"
            assert (
                refusal(f"{chosen}--model m {flag.name}{value}")
                == f"{flag.name}: {flag.reason}; {flag.remedy}"
            )


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_flags_of_other_tools_are_not_in_the_help(name: str | None) -> None:
    text = run_parser(name).format_help()
    ours = {flag.name for flag in compat.tool_of(name).flags} - set(
        run_parser()._option_string_actions
    )
    assert [flag for flag in ours if re.search(rf"  {flag}(?![\w-])", text)] == []


def words_in(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)


@pytest.mark.parametrize("name", [None, *compat.TOOLS])
def test_remedies_name_existing_flags(name: str | None) -> None:
    known = {*run_parser(None)._option_string_actions, *run_parser(name)._option_string_actions}
    for flag in compat.tool_of(name).flags:
        assert [word for word in words_in(flag.remedy) if word not in known] == [], flag.name


@pytest.mark.parametrize("name", list(TOOLS))
def test_meanings_name_existing_flags(name: str) -> None:
    named = {
        word
        for _, flag in migrating.meanings(name)
        for quoted in re.findall("`([^`]*)`", flag.here)
        for word in words_in(quoted)
    }
    assert named <= set(run_parser()._option_string_actions)


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
def test_a_workload_that_a_file_names_is_known_to_every_tool(
    tool: str, write: Callable[[str], str]
) -> None:
    named = read(f"--compat {tool} --config {write('workload: medium')}")
    assert named == read(f"--compat {tool} --workload medium")


@pytest.mark.parametrize(
    ("text", "flags", "made"),
    [
        ("random_input_len: 100", "sglang --dataset-name random", {"random_input_len": "1:100"}),
        (
            "random_range_ratio: 0.5",
            "sglang --dataset-name random",
            {"random_input_len": "512:1024"},
        ),
        (
            "random_input_len: 100",
            "sglang --workload short --random-range-ratio 0.5",
            {"random_input_len": "50:100"},
        ),
        (
            "dataset_name: prefix_repetition\nprefix_repetition_num_prefixes: 4",
            "sglang",
            {"num_prompts": 64},
        ),
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
    for page in sorted(PAGES.glob("*.md")):
        for line in page.read_text().splitlines():
            begin, serve, flags = line.partition("vllm bench serve ")
            if serve and not begin.strip():
                found.append((page.stem, flags.strip()))
    return found


def test_ten_pages_print_commands() -> None:
    assert len(commands()) == 19
    assert len({page for page, _ in commands()}) == 10


@pytest.mark.parametrize("compat_flags", ["", "--compat vllm-0.11 "])
@pytest.mark.parametrize(("page", "flags"), commands())
def test_the_pages_commands_run_with_three_words_replaced(
    page: str, flags: str, compat_flags: str
) -> None:
    settings = read(compat_flags + flags)
    assert base_url(settings) == "http://127.0.0.1:8000"
    check_server(settings)
    assert settings.backend == "openai-chat"
    assert Target.from_settings(settings, "m").url == "http://127.0.0.1:8000/v1/chat/completions"
    if "random" in flags:
        assert (settings.random_input_len, settings.random_output_len, settings.num_prompts) == (
            4000,
            200,
            500,
        )
        assert settings.seed == 42
    else:
        capped = settings.max_concurrency is not None
        assert (settings.dataset_name, settings.num_prompts) == (
            "sharegpt",
            100 if capped else 1000,
        )
    if compat_flags:
        assert settings.dataset_rule == "vllm-0.11"
        assert Target.from_settings(settings, "m").fields == {"temperature": 0.0}


def test_vllm_reads_no_file_for_random_prompts(capsys: pytest.CaptureFixture[str]) -> None:
    assert read("--model m --dataset-path x.json").dataset_path is None
    assert (
        capsys.readouterr().err
        == "loadgen: --dataset-path has no effect on random prompts, as in vLLM\n"
    )


# -- words of others


@pytest.mark.parametrize(
    ("flag", "parts"),
    [
        ("--warmup-requests", ("SGLang", "--compat sglang")),
        ("--target", ("guidellm", "--compat guidellm", "`loadgen translate`")),
        ("--streaming", ("AIPerf or genai-perf", "--compat aiperf or genai-perf")),
        ("--dataset", ("an older vLLM", "--dataset-name sharegpt --dataset-path FILE")),
        ("--dataset", ("evalscope perf", "--compat evalscope")),
        (
            "--parallel 4 --number 9 --dataset",
            ("a flag of evalscope, --max-concurrency here: add --compat evalscope",),
        ),
        ("--vus", ("other tools", "--max-concurrency")),
        ("--bogus", ("see `loadgen run --help`",)),
        ("--max-concurency", ("did you mean --max-concurrency?",)),
    ],
)
def test_a_flag_of_another_tool_is_named_with_ours(flag: str, parts: tuple[str, ...]) -> None:
    refused = refusal(f"{flag} 3")
    assert refused.startswith("--")
    assert [part for part in parts if part not in refused] == []


@pytest.mark.parametrize(
    "said", ["--rate-type constant", "--rate-type=sweep", "--profile constant", "--profile=sweep"]
)
def test_guidellms_profiles_are_refused_with_what_reads_them(said: str) -> None:
    assert "add --compat guidellm, or give the whole command to `loadgen translate`" in refusal(
        said
    )
