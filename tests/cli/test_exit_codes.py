"""Exit codes: one for each kind of end; the most severe wins, and errors are one line on stderr."""

import errno
import importlib
import subprocess
import sys

import pytest

import loadgen
from loadgen.checks import TOO_FEW_FOR_SLO, Check
from loadgen.cli import command_list, exit_codes
from loadgen.cli.main import dispatch, main
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput, EngineError, GivenUp, LoadgenError, Unreachable
from tests.helpers import saved_json
from tests.helpers.run_facts import measured, result, steady
from tests.helpers.saved_json import render, save

DEFAULT = RunSettings().max_error_rate
TOO_FEW = Check(TOO_FEW_FOR_SLO, False, "2 values", "at least 662", "send more", group="D")
STOP = {"condition": "errors>5", "at_s": 3.0, "value": 6.0}


def ended(
    verdict="VALID",
    *,
    most=DEFAULT,
    completed=10,
    error_rate=0.0,
    client=0.0,
    no_answer_since_s=None,
    stopped=None,
    slo_met=(),
    checks=(),
):
    slo = [{"limit": "x", "value": 1.0, "met": met} for met in slo_met]
    rates = {
        "error_rate": error_rate,
        "client_error_rate": client,
        "no_answer_since_s": no_answer_since_s,
        "stopped": stopped,
    }
    run = result([steady()], RunSettings(max_error_rate=most), checks=list(checks))
    return run | {
        "completed": completed,
        "loadgen": run["loadgen"] | {"verdict": verdict, "slo": slo, **rates},
    }


def code(made, *, strict=False, interrupted=False):
    return exit_codes.code(saved_json.result(made), strict=strict, interrupted=interrupted)


# -- the table


@pytest.mark.parametrize(
    ("made", "options", "expected"),
    [
        (ended(), {}, 0),
        (ended("SUSPECT"), {}, 0),
        (ended("SUSPECT"), {"strict": True}, 4),
        (ended("VALID"), {"strict": True}, 0),
        (ended("INVALID"), {}, 3),
        (ended("INVALID"), {"strict": True}, 3),
        (ended(error_rate=0.01), {}, 0),
        (ended(error_rate=0.011), {}, 5),
        (ended(client=0.01), {}, 0),
        (ended(client=0.011), {}, 5),
        (ended(client=0.011, most=0.02), {}, 0),
        (ended(no_answer_since_s=3.9, most=1.0), {}, 5),
        (ended(error_rate=0.5, most=1.0), {}, 0),
        (ended(error_rate=0.5, most=0.5), {}, 0),
        (ended(error_rate=0.5, most=0.4), {}, 5),
        (ended(error_rate=0.001, most=0.0), {}, 5),
        (ended(completed=0, error_rate=1.0), {}, 5),
        (ended(completed=0, error_rate=None), {}, 5),
        (ended(completed=0, error_rate=None, client=None), {}, 5),
        (ended(stopped=STOP), {}, 9),
        (ended(completed=0, error_rate=1.0, stopped=STOP), {}, 9),
        (ended("INVALID", stopped=STOP), {}, 3),
        (ended(stopped=STOP), {"interrupted": True}, 130),
        (ended(slo_met=(True, True)), {}, 0),
        (ended(slo_met=(True, False)), {}, 6),
        (ended(checks=[TOO_FEW], slo_met=(True,)), {}, 6),
        (ended(), {"interrupted": True}, 130),
    ],
)
def test_each_way_to_end_has_its_code(made, options, expected):
    assert code(made, **options) == expected


def test_the_most_severe_code_that_applies_wins():
    worst = {"strict": True, "interrupted": True}
    assert code(ended("INVALID", error_rate=0.5, slo_met=(False,)), **worst) == 130
    worst["interrupted"] = False
    assert code(ended("INVALID", error_rate=0.5, slo_met=(False,)), **worst) == 3
    assert code(ended("SUSPECT", error_rate=0.5, slo_met=(False,)), **worst) == 5
    assert code(ended("SUSPECT", error_rate=0.0, slo_met=(False,)), **worst) == 6
    assert code(ended("SUSPECT", error_rate=0.0), **worst) == 4


def test_a_result_of_a_run_has_a_code():
    assert code(result([steady()])) == 0
    assert code(result([])) == 5


@pytest.mark.parametrize(
    ("codes", "severest"),
    [([0, 0], 0), ([0, 4, 6], 6), ([6, 5], 5), ([5, 3], 3), ([3, 1], 1), ([1, 130, 0], 130)],
)
def test_the_most_severe_code_of_several_runs_wins(codes, severest):
    assert exit_codes.most_severe(codes) == severest


def test_every_code_is_explained():
    codes = {
        value
        for name, value in vars(exit_codes).items()
        if name.isupper() and isinstance(value, int)
    }
    assert exit_codes.WHEN.keys() == codes


# -- commands and errors


@pytest.fixture
def command(monkeypatch):
    """Puts a function in place of `loadgen run`."""

    def put(function):
        monkeypatch.setattr(command_list, "find", lambda name: function)

    return put


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BadInput("--rate", "0", "give more"), 2),
        (Unreachable("http://a: refused"), 2),
        (LoadgenError("a worker died"), 1),
        (EngineError("did not start"), 1),
    ],
)
def test_an_error_is_one_line_on_stderr_and_its_code(command, capsys, error, expected):
    def fail(argv):
        raise error

    command(fail)
    assert dispatch(["run"]) == expected
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"loadgen run: {error}\n")


@pytest.mark.parametrize("error", [GivenUp, KeyboardInterrupt])
def test_an_interrupt_before_the_clock_started_is_130(command, capsys, error):
    def fail(argv):
        raise error

    command(fail)
    assert dispatch(["run"]) == 130
    assert capsys.readouterr().err == "loadgen run: interrupted before anything was measured\n"


def test_unforeseen_error_is_raised(command):
    def fail(argv):
        raise ZeroDivisionError

    command(fail)
    with pytest.raises(ZeroDivisionError):
        dispatch(["run"])


def test_the_code_of_a_command_is_the_code_of_the_process(command):
    command(lambda argv: len(argv))
    with pytest.raises(SystemExit) as exited:
        main(["run", "a", "b", "c"])
    assert exited.value.code == 3


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "--rate", "0"],
        ["run", "--speed", "3"],
        ["run", "--rate", "fast"],
        ["report", "/nonexistent"],
    ],
)
def test_bad_input_exits_2_with_one_line_on_stderr(capsys, argv):
    assert dispatch(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loadgen {argv[0]}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("reprot", "unknown command 'reprot'; did you mean 'report'?"),
        (
            "--rate",
            "unknown command '--rate'; write the command first, for example `loadgen run --rate`",
        ),
        ("xyz", "unknown command 'xyz'; choose from run, demo, search, "),
        ("bench", "unknown command 'bench'; use `loadgen run` in place of `vllm bench serve`"),
        (
            "benchmark",
            "unknown command 'benchmark'; give the whole command to `loadgen translate`",
        ),
    ],
)
def test_unknown_command_exits_2_with_a_suggestion(capsys, typed, said):
    assert dispatch([typed]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"loadgen: {said}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"], ["help"]])
def test_help_names_the_commands_and_where_the_exit_codes_are(capsys, argv):
    assert dispatch(argv) == 0
    out = capsys.readouterr().out
    for word in ("  run ", "  report ", "loadgen help exit-codes"):
        assert word in out


def test_the_exit_codes_are_a_page_of_help(capsys):
    assert dispatch(["help", "exit-codes"]) == 0
    assert capsys.readouterr().out == f"Exit codes:\n{exit_codes.EXPLAINED}\n"


@pytest.mark.parametrize(
    "argv",
    [
        *(
            ["version"],
            ["--version"],
            ["-V"],
            ["run", "-V"],
            ["run", "--version"],
            ["tune", "--version"],
        ),
        *(["tune", "plan", "-V"], ["dataset", "fetch", "--version"], ["help", "-V"]),
    ],
    ids=" ".join,
)
def test_the_version_is_the_packages(capsys, argv):
    assert dispatch(argv) == 0
    assert capsys.readouterr().out == f"loadgen {loadgen.__version__}\n"


def test_the_version_is_no_value_of_a_flag(capsys):
    assert dispatch(["run", "--rate", "--version"]) == 2
    assert "--request-rate" in capsys.readouterr().err


def test_report_prints_a_saved_result_as_it_was_printed_when_the_run_ended(capsys, tmp_path):
    snapshot = measured([steady(i, due=i) for i in range(5)])
    data = result(snapshot)
    (path,) = save(RunSettings(save_result=True, result_dir=str(tmp_path)), data, snapshot).paths
    assert dispatch(["report", path]) == 0
    assert capsys.readouterr().out == render(data, "block")


# -- what the system refuses


def test_a_file_that_the_system_refuses_is_named(monkeypatch, capsys):
    def refuse(argv):
        raise OSError(errno.ENOSPC, "No space left on device", "/var/a file")

    monkeypatch.setattr(importlib.import_module("loadgen.cli.main"), "dispatch", refuse)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 1
    assert capsys.readouterr().err == "loadgen: /var/a file: No space left on device\n"


@pytest.mark.integration
def test_without_a_name_it_is_standard_output():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "loadgen", "--version"]
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "loadgen: standard output cannot be written: No space left on device\n"
