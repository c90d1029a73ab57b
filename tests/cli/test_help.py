"""Help: commands with a summary, the main flags of each on one screen, and the rest by topic."""

import argparse
import shlex
import sys
from importlib import metadata
from types import ModuleType

import pytest

from loadgen.cli import command_list, compat, flags, run_settings
from loadgen.cli.commands import dataset, search
from loadgen.cli.main import dispatch, main
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


@pytest.mark.parametrize("tool", [None, *compat.TOOLS])
@pytest.mark.parametrize("name", PARSERS)
def test_a_first_screen_has_each_main_flag_in_one_spelling(name, tool):
    parser = PARSERS[name](tool)
    text = parser.first_screen()
    rows = [line.split()[0] for line in text.splitlines() if line.startswith("  --")]
    known = parser._option_string_actions  # a flag that means something else in a tool is hidden
    assert rows == [flag for flag in parser.main_flags if known[flag].help != argparse.SUPPRESS]
    assert "--request-rate" not in text


@pytest.mark.parametrize("name", PARSERS)
def test_the_examples_of_a_first_screen_are_command_lines(name):
    text = PARSERS[name]().first_screen().partition("Examples:\n")[2].partition("\n\n")[0]
    commands = [
        shlex.split(line, comments=True)[1:] for line in text.replace("\\\n", " ").splitlines()
    ]
    assert len(commands) >= 3
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
    assert parser.main_flags[:2] == ("--slo", "--over")
    text = parser.format_help()
    assert text.index("  --over") < text.index("  --config") < text.index("  --slo")


def test_flags_that_a_search_sets_itself_are_hidden_and_still_explained(capsys):
    assert "--ramp-up" not in search.parser().format_help()
    assert dispatch(["search", "--slo", "ttft_p99<1s", "--ramp-up-strategy", "linear"]) == 2
    assert "does not apply to a search" in capsys.readouterr().err


# -- by topic


def test_every_flag_is_in_one_topic():
    parser = flags.run_parser()
    lines = "".join(map(parser.topic, parser.topic_names)).splitlines()
    rows = [line.split()[0].rstrip(",") for line in lines if line.startswith("  -")]
    known = [
        action.option_strings[0] for action in parser._actions if action.help != argparse.SUPPRESS
    ]
    assert sorted(rows) == sorted(known)


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
