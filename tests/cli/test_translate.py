"""Commands of other benchmarks become commands of loadgen, and what is not the same is said."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from loadgen.cli import exit_codes, flags, run_settings
from loadgen.cli.main import dispatch
from loadgen.cli.translate import TOOLS, shell_words, translate
from loadgen.errors import BadInput
from loadgen.workload import endpoints
from tests.helpers.compat_lines import read, refusal
from tests.helpers.source import ROOT

CASES = json.loads((ROOT / "tests/data/other_commands.json").read_text())
AIPERF = "--compat aiperf --url h:80 -m m --endpoint-type chat --streaming --isl 20 --concurrency 3"
# What stands for a variable, or for a placeholder, when the words of a command are read.
UNKNOWN = re.compile(r"\$\(\([^)]*\)\)|\$\{[^}]*\}|\$\w+|\{[a-z_.]+\}|<[^>]*>")


def named(case: dict[str, Any]) -> str:
    return " ".join(case["command"].split())[:60]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_command_has_its_words_and_its_notes(case: dict[str, Any]) -> None:
    result = translate(case["command"])
    assert result.words == shlex.split(case["words"])
    assert (not result.blocked, sorted(result.differs), sorted(result.without)) == (
        case["same_load"],
        case["differs"],
        case["without"],
    )


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_words_are_settings_of_a_run(case: dict[str, Any]) -> None:
    words = [UNKNOWN.sub("7", word) for word in shlex.split(case["words"])]
    _, runs = run_settings.swept(flags.run_settings(words))
    assert endpoints.checked(runs[0]) is not None


@pytest.mark.parametrize("tool", TOOLS)
def test_every_recorded_flag_of_a_tool_has_a_row(tool: str) -> None:
    path = ROOT / f"tests/data/flags/{tool}.json"
    releases = json.loads(path.read_text())["flags"] if path.exists() else {}
    recorded = {flag for flags in releases.values() for flag in flags}
    assert [flag for flag in sorted(recorded) if TOOLS[tool].flag(flag) is None] == []


@pytest.mark.parametrize("tool", TOOLS)
def test_a_spelling_stands_in_one_row(tool: str) -> None:
    names = [name for flag in TOOLS[tool].flags for name in flag.names]
    assert sorted(names) == sorted(set(names))


def test_the_output_is_a_script_of_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    command = "guidellm benchmark --target $URL --profile sweep --max-seconds 9 --data-samples 4"
    assert dispatch(["translate", f"{command} --data prompt_tokens=5,output_tokens=5"]) == 0
    first, *notes = capsys.readouterr().out.splitlines()
    assert first.startswith('loadgen run --base-url "$URL" --backend openai-chat ')
    assert [note for note in notes if not note.startswith("# ")] == []
    assert [note for note in notes if not note.startswith("#  ")] == [
        "# not the same load, only the nearest:",
        "# differs:",
        "# without a counterpart:",
    ]


def test_words_may_be_given_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["aiperf", "profile", "-m", "m", "--url", "h:80", "--isl", "3", "--osl", "4"]
    assert dispatch(["translate", *words]) == exit_codes.DONE
    assert "--random-input-len 3 --random-output-len 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["curl http://h:80"], "'curl http://h:80' is no command of a known tool"),
        (["aiperf profile --model 'm"], "a quote ' is not closed"),
        (["aiperf profile --isl ${X"], "a { is not closed"),
        ([], "none is given"),
    ],
)
def test_what_is_no_command_exits_2(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["translate", *words]) == exit_codes.BAD_INPUT
    assert capsys.readouterr().err.startswith(f"loadgen translate: command: {problem}; ")


def test_a_file_may_hold_the_command_or_the_settings(tmp_path: Path) -> None:
    script, settings = tmp_path / "run.sh", tmp_path / "run.yaml"
    script.write_text("#!/bin/sh\nset -e\nevalscope perf --model m --dataset random | tee log\n")
    settings.write_text("load:\n  stages: [{rate: 2, duration: 5}]\nserver: {base_url: http://h}\n")
    assert translate(str(script)).title == "evalscope"
    by_path = translate(str(settings)).words
    assert by_path == translate(f"inference-perf --config_file {settings}").words
    assert "--num-prompts 10" in " ".join(by_path)


def test_words_beside_a_file_win_over_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text(
        "target: http://h\nprofile: concurrent\nrate: [1, 4]\ndata: [prompt_tokens=2]\n"
    )
    words = translate(f"guidellm benchmark --scenario {path} --max-requests 9 --rate 3").words
    assert {"http://h", "openai-chat", "--no-max-tokens"} <= {*words}
    assert words[words.index("--max-concurrency") + 1] == "3"
    path.write_text("load: {stages: [{rate: 2, duration: 5}]}\nserver: {base_url: http://h}\n")
    words = translate(f"inference-perf --config_file {path} --server.base_url http://b").words
    assert words[:2] == ["--base-url", "http://b"]


def test_a_trace_on_this_machine_says_whether_it_has_times(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    command = f"aiperf profile -m m --custom-dataset-type mooncake_trace --input-file {path}"
    path.write_text('{"input_length": 4, "output_length": 5}\n')
    assert "--trace-times" in translate(command).words
    path.write_text('{"timestamp": 1, "input_length": 4, "output_length": 5}\n')
    assert "--trace-times" not in translate(command).words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 'b c' \"d $E\"", ["a", "b c", "d $E"]),
        ("a $(( x * 2 + 1 )) b", ["a", "$((x*2+1))", "b"]),
        ("a \\\n  b # c\n", ["a", "b", "\n"]),
        ("a 2>&1 | b", ["a", "2>&1", "|", "b"]),
        ("http://<host>:80 ${X:-a b}", ["http://<host>:80", "${X:-a b}"]),
    ],
)
def test_words_are_those_of_a_shell(text: str, words: list[str]) -> None:
    assert shell_words.split(text) == words


@pytest.mark.parametrize("word", ["plain", "a b", "it's", '{"a": $B}', "$X", "<a>", ""])
def test_a_word_survives_its_quotes(word: str) -> None:
    assert shell_words.split(shell_words.quoted(word)) == [word]


def test_compat_runs_the_flags_of_another_tool(capsys: pytest.CaptureFixture[str]) -> None:
    settings = read(f"{AIPERF} --osl 9 --benchmark-duration 5 --html a.html")
    assert (settings.base_url, settings.random_output_len) == ("http://h:80", 9)
    assert (settings.max_concurrency, settings.duration, settings.html) == (3, 5.0, "a.html")
    assert "loadgen: differs from AIPerf: prompts-repeat: " in capsys.readouterr().err
    assert read(AIPERF.replace("aiperf --url", "aiperf aiperf profile --osl 9 --url")).model == "m"


def test_compat_refuses_another_load() -> None:
    assert refusal(f"{AIPERF} --osl 9 --audio-length-mean 1") == (
        "--compat: no command asks for the same load: --audio-length-mean: audio in a chat is not "
        "supported; leave it out; `loadgen translate` prints the nearest command"
    )


def test_a_value_that_cannot_be_read_is_bad_input() -> None:
    with pytest.raises(BadInput, match="a value of inference-perf cannot be read"):
        translate("load:\n  stages: [{rate: fast}]\napi: {}\n")


@pytest.mark.parametrize("tool", list(TOOLS))
def test_flags_of_a_tool_are_listed_with_what_becomes_of_each(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["translate", "--flags", tool]) == exit_codes.DONE
    told = capsys.readouterr().out
    assert told.startswith("Flags that become others\n")
    for flag in TOOLS[tool].flags:
        assert flag.names[0] in told
        assert flag.here.split()[0].strip("`:,;") in told
