"""Help: commands with a summary, the main flags of each on one screen, and the rest by topic."""

import argparse
import dataclasses
import shlex
import sys
from importlib import metadata
from types import ModuleType

import pytest

from loadgen.cli import command_list, compat, flags, run_settings
from loadgen.cli.commands import dataset, search
from loadgen.cli.main import dispatch, main
from loadgen.config.option import COMPAT, FIRST
from loadgen.config.settings import RunSettings
from tests.helpers import help_pages

PARSERS = {"run": flags.run_parser, "search": search.parser, "dataset": dataset.parser}
LINES, COLUMNS = 24, 80  # of the smallest usual terminal


def command(argv):
    """Serve tea. More about tea."""


@pytest.fixture
def added(monkeypatch):
    """Install commands by name, of which one is missing."""
    module = ModuleType("tea_shop")
    module.command = command
    monkeypatch.setitem(sys.modules, "tea_shop", module)
    points = metadata.EntryPoints(
        metadata.EntryPoint(name, f"tea_shop:{attribute}", "loadgen.commands")
        for name, attribute in (("tea", "command"), ("broken", "nothing"))
    )
    monkeypatch.setattr(command_list, "installed", lambda group: points.select(group=group))


def test_each_command_says_what_it_is_for(added, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "tea serve tea" in lines
    assert "broken (fails to load)" in lines
    assert not ended.value.code


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="argparse lays out options differently")
@pytest.mark.parametrize("name", help_pages.COMMANDS)
def test_a_help_page_is_the_golden_one(name):
    golden = (help_pages.FOLDER / f"help-{name}.txt").read_text()
    assert help_pages.page(name) == golden, "python -m tests.helpers.help_pages"


# -- one screen


@pytest.mark.parametrize(
    "words", [["--help"], *([name, "--help"] for name in PARSERS), ["help", "run"]], ids=" ".join
)
def test_a_first_page_of_help_fits_a_small_terminal(words):
    lines = help_pages.shown(words).splitlines()
    assert len(lines) < LINES, "the prompt needs a line"
    assert max(map(len, lines)) <= COLUMNS


@pytest.mark.parametrize("name", PARSERS)
def test_a_first_screen_has_each_main_flag_in_its_shortest_spelling(name):
    parser = PARSERS[name]()
    rows = [line.split()[0] for line in parser.first_screen().splitlines() if line[:3] == "  -"]
    main_fields = [
        action.dest for action in parser._actions if parser.tiers.get(action.dest) == FIRST
    ]
    assert [parser._option_string_actions[row].dest for row in rows] == main_fields
    assert {"--request-rate", "--result-filename"}.isdisjoint(rows)


def test_the_first_screen_of_a_run_has_what_a_first_hour_needs():
    rows = [line.split()[0] for line in flags.run_parser().first_screen().splitlines() if line]
    assert [row for row in rows if row.startswith("-")] == [
        *("--base-url", "--backend", "--model", "--tokenizer", "--api-key"),
        *("--rate", "--max-concurrency", "--num-prompts", "--duration"),
        *("--dataset-name", "--dataset-path", "--random-input-len", "--random-output-len"),
        *("--slo", "-o", "--html"),
    ]


@pytest.mark.parametrize("name", PARSERS)
def test_the_examples_of_a_first_screen_are_command_lines(name):
    text = PARSERS[name]().first_screen().partition("Examples:\n")[2].partition("More flags")[0]
    commands = [
        shlex.split(line, comments=True)[1:] for line in text.replace("\\\n", " ").splitlines()
    ]
    assert commands
    for first, *words in commands:
        assert first == name
        if words[0].startswith("-"):
            given = flags.parse(words, PARSERS[name]())
            own = {
                flag: value
                for flag, value in given.items()
                if flag not in ("over", "export", "plot")
            }
            for settings in run_settings.swept(own)[1]:
                settings.checked()


def test_a_short_text_ends_at_the_first_semicolon_and_keeps_the_default(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    text = " ".join(PARSERS["run"]().first_screen().split())
    assert "--random-input-len TOKENS tokens in a random prompt (1024) --random-output-len" in text


def test_a_search_shows_its_own_flags_first():
    parser = search.parser()
    text = parser.format_help()
    assert "--slo LIMITS [FLAGS]" in text
    assert text.index("  --over") < text.index("  --config") < text.index("  --slo")


def test_flags_that_a_search_sets_itself_are_hidden_and_still_explained(capsys):
    assert "--ramp-up" not in search.parser().format_help()
    assert dispatch(["search", "--slo", "ttft_p99<1s", "--ramp-up-strategy", "linear"]) == 2
    assert "does not apply to a search" in capsys.readouterr().err


# -- by topic


def rows_of(text):
    return [line.split()[0].rstrip(",") for line in text.splitlines() if line.startswith("  -")]


def test_every_flag_is_in_one_topic_except_those_of_other_tools():
    parser = flags.run_parser()
    rows = rows_of("".join(map(parser.topic, parser.topic_names)))
    known = [
        action.option_strings[0]
        for action in parser._actions
        if action.help != argparse.SUPPRESS and parser.tiers.get(action.dest) != COMPAT
    ]
    assert sorted(rows) == sorted(known)


def test_all_flags_of_help_are_the_main_and_the_everyday_ones():
    parser = flags.run_parser()
    rows = rows_of(parser.format_help())
    assert set(rows) > set(rows_of(parser.first_screen())) - {"--rate", "-o"}
    assert 55 <= len(rows) <= 65
    assert "--output-len" in rows, "the flag of vLLM that is one for all data sets"
    assert {"--rate-profile", "--warm-connections", "--sonnet-input-len"}.intersection(rows) == {
        "--rate-profile"
    }


def test_a_flag_that_only_another_tool_needs_is_shown_with_that_tool_and_by_its_name():
    fields = {
        field.name
        for field in dataclasses.fields(RunSettings)
        if field.metadata["option"].tier == COMPAT
    }
    for name in compat.TOOLS:
        parser = flags.run_parser(name)
        rows = rows_of(parser.first_screen())
        assert rows
        fields -= {parser._option_string_actions[row].dest for row in rows}
    assert fields == {"sglang_result"}, "which --compat sglang sets"
    assert "--sonnet-input-len TOKENS" in help_pages.shown(["help", "run", "--sonnet-input-len"])


def test_the_flags_of_a_tool_that_become_others_are_named_with_it():
    text = help_pages.shown(["run", "--compat", "sglang", "--help"])
    assert text.startswith("usage: loadgen run --compat sglang [FLAGS]")
    assert "--gsp-num-groups" in text
    assert "--gsp-num-groups" not in help_pages.shown(["run", "--help-all"])


@pytest.mark.parametrize(
    "words", [["data"], ["set"], ["--rate"], ["request_rate"], ["engine", "timeout"]], ids=" ".join
)
def test_a_topic_or_a_flag_is_shown_by_any_of_its_names(words):
    expected = {
        "data": "--dataset-name",
        "set": "--dataset-name",
        "engine": "--replicas",
        "timeout": "--timeout TIME",
    }
    text = help_pages.shown(["help", "run", *words])
    for word in words:
        assert expected.get(word, "--request-rate RPS, --rate RPS") in text


@pytest.mark.parametrize(
    ("words", "remedy"),
    [(["run", "duratoin"], "--duration"), (["run", "zzz"], "judgement"), (["rum"], "'run'")],
)
def test_an_unknown_topic_or_command_is_refused_with_a_suggestion(capsys, words, remedy):
    assert dispatch(["help", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("loadgen help: ")
    assert remedy in err


@pytest.mark.parametrize(
    "words", [["report"], ["dataset", "fetch"], ["tune", "plan"]], ids=" ".join
)
def test_help_of_a_command_without_topics_is_its_own(words):
    assert help_pages.shown(["help", *words]) == help_pages.shown([*words, "--help"]) != ""
