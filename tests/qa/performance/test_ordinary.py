"""The bench of ordinary runs counts verdicts and judges the aim; the verdicts are not tested."""

import json
import shlex
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.performance import ordinary
from bench.performance.ordinary import Finding, Run
from bench.performance.ordinary_commands import COMMANDS, FEW, GROUPS, ORDINARY, STRESS, Command

LATE = Finding(
    check="timing error too large",
    value="p99 ICL by at most 0.5 of 9 ms",
    limit="1% of each, or 0.1 ms",
    advice="free a core",
)


def run(name: str = "a", verdict: str = "VALID", *findings: Finding, group: str = ORDINARY) -> Run:
    return Run(name, group, 0.5, verdict, 0.1, findings)


def check(name: str, ok: bool | None, *, counts: bool) -> dict[str, Any]:
    found = {"value": "1 ms", "limit": "0.5 ms", "advice": "free a core"}
    return {"name": name, "ok": ok, "counts": counts, **found}


def test_names_of_commands_are_distinct_and_groups_known() -> None:
    assert max(Counter(command.name for command in COMMANDS).values()) == 1
    assert {command.group for command in COMMANDS} == set(GROUPS)
    assert set(ordinary.IN_QUICK) < {command.name for command in COMMANDS}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_commands_end_by_themselves_and_name_no_other_server(command: Command) -> None:
    words = shlex.split(command.words.format(faulty="http://faulty", llama="http://llama"))
    assert {"--num-prompts", "--duration", "trace"} & set(words)
    assert ("--base-url" in words) == (command.words.count("{") > 0)


def test_quick_commands_are_few_and_short() -> None:
    commands = ordinary.shortened(COMMANDS)
    assert len(commands) == len(ordinary.IN_QUICK)
    for command in commands:
        words = command.words.split()
        assert command.times == 1
        if "--num-prompts" in words:
            assert words[words.index("--num-prompts") + 1] == "20"


def test_a_run_keeps_the_failed_checks_that_count() -> None:
    checks = [
        check("lag", False, counts=True),
        check("loop busy", False, counts=False),
        check("gaps", None, counts=True),
        check("rate", True, counts=True),
    ]
    found = Run.of("a", ORDINARY, 1.0, {"verdict": "SUSPECT", "checks": checks})
    assert found.verdict == "SUSPECT"
    assert found.findings == (Finding("lag", "1 ms", "0.5 ms", "free a core"),)
    assert found.client_ms is None, "an older result does not say"


def test_client_at_most_is_of_the_clock_of_the_run() -> None:
    errors = {
        name: {"mean": value, "p99": None}
        for name, value in [
            ("ttft_due", 0.2),
            ("ttft_sent", 9.0),
            ("ttfo_due", 0.3),
            ("ttfo_sent", 9.0),
            ("tpot", 0.1),
            ("tpot_n1", 9.0),
            ("itl", 0.4),
            ("icl", 0.7),
            ("e2el_due", 0.5),
            ("e2el_sent", 9.0),
        ]
    }
    assert ordinary.max_client_ms({"client_error_ms": errors, "latency_from": "due"}) == 0.7
    assert ordinary.max_client_ms({"client_error_ms": errors, "latency_from": "sent"}) == 9.0


@pytest.mark.parametrize(
    ("finding", "complete"),
    [
        (LATE, True),
        (Finding("requests sent late", "5% late", "1% later than 5 ms", ""), False),
        (Finding("provenance", "unknown", "known", "name it"), False),
    ],
)
def test_a_finding_needs_figure_bound_and_cause(finding: Finding, complete: bool) -> None:
    assert finding.is_complete is complete


def test_the_aim_needs_three_quarters_of_the_ordinary_runs() -> None:
    suspect, broken = run("b", "SUSPECT", LATE), run("c", "INVALID", LATE)
    assert ordinary.is_met([run(), run(), run(), suspect])
    assert not ordinary.is_met([run(), run(), suspect])
    assert not ordinary.is_met([run(), run(), broken])
    assert not ordinary.is_met([])


def test_the_aim_ignores_other_groups_and_runs_left_out() -> None:
    others = [run("b", "SUSPECT", group=STRESS), run("c", "VALID", group=FEW), run("d", "")]
    assert ordinary.is_met([run(), *others])
    assert not ordinary.is_met(others)


def test_the_aim_needs_a_reason_for_each_suspect_run() -> None:
    unexplained = run("b", "SUSPECT", Finding("odd", "unknown", "known", "name it"))
    assert not ordinary.is_met([run(), run(), run(), unexplained])
    assert not ordinary.is_met([run(), run(), run(), run("b", "SUSPECT")])


def test_counts_are_by_verdict_and_of_runs_left_out() -> None:
    runs = [run(), run("b", "SUSPECT", LATE), run("c", ""), run("d", "VALID", group=STRESS)]
    assert ordinary.counts(runs, ORDINARY) == "1 VALID, 1 SUSPECT, 0 INVALID of 2, 1 not run"


def test_saved_runs_are_read_again() -> None:
    runs = [run(), run("b", "SUSPECT", LATE)]
    saved = ordinary.to_json(runs, ["python", "-m", "loadgen"])
    assert ordinary.from_json(saved) == runs
    assert json.loads(saved)["loadgen"] == "python -m loadgen"


def test_report_has_a_row_per_run_and_the_reasons() -> None:
    text = ordinary.report([run(), run("b", "SUSPECT", LATE), run("c", "", group=STRESS)])
    lines = [line for line in text.splitlines() if line.startswith(("| a ", "| b ", "| c "))]
    rows = [line.split(" | ") for line in lines]
    assert [row[4] for row in rows] == ["VALID", "SUSPECT", "not run"]
    assert f"- b: timing error too large: {LATE.value}, limit {LATE.limit}: free a core" in text
    assert text.endswith("MISSED.")


def test_report_shows_earlier_runs_beside_new_ones() -> None:
    text = ordinary.report([run(), run("new")], [run("a", "SUSPECT", LATE)])
    lines = [line for line in text.splitlines() if line.startswith(("| a ", "| new "))]
    rows = [line.split(" | ") for line in lines]
    assert [(row[4], row[9]) for row in rows] == [("SUSPECT", "VALID"), ("-", "VALID")]
    assert "Before: 0 VALID, 1 SUSPECT, 0 INVALID of 1." in text


def test_a_command_without_its_server_or_result_is_not_run(tmp_path: Path) -> None:
    llama = next(command for command in COMMANDS if "{llama}" in command.words)
    assert ordinary.run_one(llama, "a", ["loadgen"], {}, tmp_path).note == "no --llama"
    fails = [sys.executable, "-c", "import sys; sys.exit('it is broken')"]
    found = ordinary.run_one(COMMANDS[0], "a", fails, {}, tmp_path)
    assert (found.verdict, found.note) == ("", "it is broken")
    missing = ordinary.run_one(COMMANDS[0], "a", ["/no/such/program"], {}, tmp_path)
    assert "No such file" in missing.note


def test_quick_runs_have_verdicts_and_are_saved(tmp_path: Path) -> None:
    code = ordinary.main(["--quick", "--json", str(tmp_path / "runs.json")])
    runs = ordinary.from_json((tmp_path / "runs.json").read_bytes())
    assert [each.name for each in runs] == [each.name for each in ordinary.shortened(COMMANDS)]
    assert {each.verdict for each in runs} <= {"VALID", "SUSPECT", "INVALID"}
    assert all(each.others_cores is not None for each in runs)
    assert code == (0 if ordinary.is_met(runs) else 1)
