"""The command lines of the test servers refuse invalid values in one line."""

import importlib

import pytest

from loadgen.testing import server_main

SERVERS = {"metronome": [], "roofline": [], "faulty": [], "replay": ["no.jsonl"]}


def refused(capsys, module, *flags):
    """Call a server's command line, which must not begin to listen; returns its one line."""
    assert (
        importlib.import_module(f"loadgen.testing.{module}").main([*SERVERS[module], *flags]) == 2
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.fixture(autouse=True)
def never_listens(monkeypatch):
    def run(*arguments):
        raise AssertionError("it has been accepted")

    monkeypatch.setattr(server_main, "run", run)


@pytest.mark.parametrize("module", SERVERS)
@pytest.mark.parametrize("port", ["65536", "-1", "http"])
def test_a_port_that_is_none_is_refused(capsys, module, port):
    line = refused(capsys, module, "--port", port)
    if port == "http":
        assert (
            line
            == "error: --port: 'http' is not a whole number; write digits only, for example 10\n"
        )
    else:
        assert line.startswith(f"error: --port: {port}")
        assert line.endswith(f"see `python -m loadgen.testing.{module} --help`\n")


@pytest.mark.parametrize("module", ["metronome", "roofline"])
@pytest.mark.parametrize("tokens", ["0", "-3", "1048577", "some"])
def test_answers_of_no_tokens_are_refused(capsys, module, tokens):
    assert refused(capsys, module, "--tokens", tokens).startswith("error: --tokens: ")


@pytest.mark.parametrize("module", SERVERS)
def test_an_unknown_flag_is_refused(capsys, module):
    assert (
        refused(capsys, module, "--prot", "8000")
        == "error: --prot: unknown; did you mean --port?\n"
    )


@pytest.mark.parametrize(
    ("module", "flags", "says"),
    [
        (
            "faulty",
            ["--plan", "reset=0.1,stall:3=0.1,reset=0.2"],
            "--plan: 'reset' is given twice; write NAME",
        ),
        ("faulty", ["--plan", "stall:3=0.1,stall:3=0.1"], "'stall:3' is given twice"),
        ("faulty", ["--plan", "reset=2"], "'reset=2' is not a share"),
        ("metronome", ["--gap-ms", "-1"], "gap_ms: -1.0 is out of range"),
        ("metronome", ["--shape", "square"], "shape: unknown shape 'square'"),
        ("replay", ["--speed", "0"], "--speed: 0 is not a speed; give a number above 0"),
        ("replay", [], "no.jsonl: No such file or directory"),
    ],
)
def test_unsupported_option_is_refused(capsys, module, flags, says):
    assert says in refused(capsys, module, *flags)


def test_fault_with_two_numbers_is_two_faults(monkeypatch):
    monkeypatch.setattr(server_main, "run", lambda *arguments: 0)
    faulty = importlib.import_module("loadgen.testing.faulty")
    assert faulty.main(["--plan", "stall:3=0.1,stall:4=0.1"]) == 0
