"""Shell completion: which words may follow, and which commands are asked for their flags."""

import pytest

from loadgen.cli import command_list
from loadgen.cli.commands import completion
from loadgen.cli.main import dispatch
from loadgen.util.argument_parser import OneLineParser


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ([], ["run", "serve", "help", "--version"]),
        (["help"], ["run", "exit-codes"]),
        (["help", "run"], ["load", "data", "general"]),
        (["help", "run", "load"], ["data"]),
        (["dataset"], ["fetch", "cache"]),
        (["tune"], ["plan", "run", "schema"]),
        (["serve"], ["sim", "vllm"]),
    ],
    ids=str,
)
def test_words_that_are_no_flags_are_offered_by_their_place(words, offered):
    assert set(offered) <= set(completion.next_words(words, "") or ())


@pytest.mark.parametrize(
    ("words", "prefix"),
    [(["run"], ""), (["dataset"], "--"), (["tune", "plan"], ""), (["report"], "a")],
    ids=str,
)
def test_elsewhere_the_parser_of_the_command_is_asked(words, prefix):
    assert completion.next_words(words, prefix) is None


def test_a_command_without_topics_has_no_further_words_of_help():
    assert completion.next_words(["help", "report"], "") == []


def test_a_command_of_another_package_is_not_called(monkeypatch):
    calls = []

    def foreign(argv):
        calls.append(argv)

    monkeypatch.setattr(command_list, "find", lambda name: foreign)
    completion.call_own("tea", ["a"])
    assert calls == []
    foreign.__module__ = "loadgen.tea"
    completion.call_own("tea", ["a"])
    assert calls == [["a"]]


@pytest.mark.parametrize(
    "words",
    [
        *(
            ["run", "--rate", "3"],
            ["search"],
            ["dataset"],
            ["dataset", "fetch"],
            ["dataset", "cache"],
            ["doctor"],
        ),
        *(
            ["report"],
            ["compare"],
            ["audit"],
            ["import"],
            ["tune", "plan"],
            ["tune", "run"],
            ["tune", "export"],
        ),
        *(
            ["benchmark-runner", "benchmark", "run"],
            ["completion"],
            ["serve", "sim"],
            ["engines"],
            ["version"],
        ),
    ],
    ids=" ".join,
)
def test_every_command_reaches_its_parser_before_it_does_anything(monkeypatch, words):
    class Reached(Exception):
        pass

    def reached(parser):
        raise Reached(parser.prog)

    monkeypatch.setattr(OneLineParser, "on_parse", staticmethod(reached))
    with pytest.raises(Reached) as found:
        dispatch(words)
    named = [word for word in words if not word.startswith("-") and word != "3"]
    assert str(found.value).split() == ["loadgen", *named]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_code_for_a_shell_names_the_command(capsys, shell):
    assert dispatch(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert "complete" in out
    assert "loadgen" in out
    assert err == ""


def test_an_unknown_shell_is_refused(capsys):
    assert dispatch(["completion", "tcsh"]) == 2
    assert "choose from" in capsys.readouterr().err
