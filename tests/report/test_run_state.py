"""The state of a run, over random results: no sentence that people read denies what the numbers
show.
"""

import random
import re

import pytest

from loadgen.checks import PILE_UP, TOO_FEW_FOR_SLO, Check
from loadgen.cli import exit_codes
from loadgen.config.settings import RunSettings
from loadgen.core.outcome import Outcome
from loadgen.document.terminal_writer import SCREEN_LINES
from loadgen.report.console import Form, render
from loadgen.report.result import RunResult
from loadgen.report.run_state import COLOURS, EXIT_CODES, MEANING, State, state_of
from loadgen.report.sections.latencies import few_mark, large_client_errors
from loadgen.report.sections.next_step import after_run
from loadgen.report.summary_line import summary_line
from loadgen.stats.percentile_confidence_interval import least_samples
from tests.helpers import saved_json
from tests.helpers.console_reports import RECORDED
from tests.helpers.run_facts import due_at, failed, result, steady

SUCCESSES = (0, 1, 2, 3, 11, 12)
FAILURES = (Outcome.STATUS, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.CLIENT_ERROR)
LIMITS = (None, "ttft_mean<1s", "ttft_p50<1s", "ttft_p99<1s", "ttft_p50<5ms", "ttft_p99<5ms")
CHECKS = (
    Check("load not sent", False, "3 of 9", "1%", "raise the limit", group="A"),
    Check("timing error too large", False, "p99 TTFT by 9 ms", "1%", "free a core", group="C"),
    Check(PILE_UP, False, "from 1 to 90", "a rise of 9", "lower the rate", group="D"),
    Check("several tokens per event", False, "3", "1", "read TPOT", counts=False, group="E"),
)
# The codes that each state may have: those of what else is wrong come first.
CODES = {
    State.FAILED: {exit_codes.ERRORS, exit_codes.INVALID},
    State.INVALID: {exit_codes.INVALID},
    State.OVERLOADED: {exit_codes.DONE, exit_codes.SLO_MISSED, exit_codes.SUSPECT},
    State.TOO_FEW: {exit_codes.DONE, exit_codes.SLO_MISSED, exit_codes.SUSPECT},
    State.SLO_MISSED: {exit_codes.SLO_MISSED},
    State.SUSPECT: {exit_codes.DONE, exit_codes.SLO_MISSED, exit_codes.SUSPECT},
    State.OK: {exit_codes.DONE},
}


def random_result(number: int) -> RunResult:
    """Make a result: some requests that succeeded, some that failed, an SLO, failed checks, and a
    client error.
    """
    chance = random.Random(number)
    ok, bad = chance.choice(SUCCESSES), chance.choice((0, 0, 0, 1, 3))
    ttft_ms = (lambda: 20.0) if chance.random() < 0.3 else (lambda: chance.uniform(5, 60))
    records = [steady(index, due=index * 100, ttft=ttft_ms()) for index in range(ok)]
    records += [failed(ok + index, chance.choice(FAILURES)) for index in range(bad)]
    limits = chance.choice(LIMITS)
    settings = RunSettings(
        request_rate=10.0,
        slo=limits,
        strict=chance.random() < 0.3,
        max_error_rate=chance.choice((0.0, 0.01, 0.5)),
    )
    checks = [check for check in CHECKS if chance.random() < 0.15]
    percentile = next((p for p in (50, 99) if limits and f"p{p}" in limits), None)
    if percentile is not None and ok < least_samples(percentile):
        value = f"{ok} values, and p{percentile} needs {least_samples(percentile)}"
        checks.append(Check(TOO_FEW_FOR_SLO, False, value, "", "send more requests", group="D"))
    schedule = due_at(*range(0, 100 * max(ok + bad, 1), 100))
    data = result(records, settings, checks=checks, schedule=schedule)
    own = data["loadgen"]
    own["overloaded"] = any(check.name == PILE_UP for check in checks)
    own["simulated"] = chance.random() < 0.2
    for name in ("ttft_due", "tpot"):
        error_ms = chance.choice((0.05, 9.0)) if CHECKS[1] in checks else 0.05
        own["client_error_ms"][name] = dict.fromkeys(own["client_error_ms"][name], error_ms)
    if chance.random() < 0.05:
        own["no_answer_since_s"] = 3.9
    return saved_json.result(data)


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(range(1000), id="1,000"),
        pytest.param(range(1000, 5000), id="4,000 more", marks=pytest.mark.slow),
    ],
)
def results(request: pytest.FixtureRequest) -> list[RunResult]:
    return [random_result(number) for number in request.param]


def test_every_state_has_a_meaning_a_colour_and_codes() -> None:
    assert MEANING.keys() == COLOURS.keys() == CODES.keys() == EXIT_CODES.keys() == set(State)
    for state, text in EXIT_CODES.items():
        assert {int(code) for code in re.findall(r"\b\d\b", text)} <= CODES[state]


def test_the_generator_covers_every_state(results: list[RunResult]) -> None:
    found = {state_of(made) for made in results}
    assert found == set(State)


def test_the_state_stands_below_the_title_and_at_the_end_of_a_long_report(
    results: list[RunResult],
) -> None:
    forms: list[Form] = ["line", "brief", "block", "full"]
    for number, made in enumerate(results[::10]):
        form = forms[number % 4]
        lines = render(made, form=form).splitlines()
        states = [at for at, line in enumerate(lines) if line == summary_line(made)]
        if form == "line":
            assert states == [0]
            continue
        assert states[0] <= 3
        assert lines[states[0] + 1].startswith("next: ") or not after_run(made)
        assert states[1:] == ([len(lines) - 1] if len(lines) > SCREEN_LINES else [])


def test_the_exit_code_follows_from_the_state(results: list[RunResult]) -> None:
    for made in results:
        strict = made.provenance.settings.strict
        code = exit_codes.code(made, strict=strict, interrupted=False)
        assert code in CODES[state_of(made)], summary_line(made)
        assert not strict or code or made.verdict == "VALID"


def test_nothing_is_well_where_nothing_succeeded(results: list[RunResult]) -> None:
    for made in results:
        if not made.numbers.completed:
            lines = render(made, form="block").splitlines()
            assert len(lines) <= 8
            assert not re.search(r"\b(OK|VALID|met|n/a)\b", "\n".join(lines))


def test_the_line_has_no_percentile_of_too_few_requests(results: list[RunResult]) -> None:
    for made in results:
        for latency, figures in _figures(made).items():
            requests = made.latency(latency).count
            assert not [name for name in figures if few_mark(name, requests)], summary_line(made)


def test_a_mark_of_the_table_is_in_the_line_that_quotes_the_figure(
    results: list[RunResult],
) -> None:
    for made in results:
        for latency, figures in _figures(made).items():
            name = latency if latency == "tpot" else f"{latency}_due"
            for statistic, text in figures.items():
                is_moved = bool(large_client_errors(name, made, (statistic,)))
                assert text.startswith("~") is is_moved, summary_line(made)


def test_a_run_that_is_ok_takes_twelve_lines_beside_the_block(results: list[RunResult]) -> None:
    for made in results[::10]:
        if state_of(made) is State.OK and not made.slo:
            lines = render(made, form="block").splitlines()
            begin, end = lines.index(RECORDED[0]), lines.index("=" * 50)
            assert len(lines) - (end - begin + 1) <= 12
            assert len(render(made, form="brief").splitlines()) <= 14
            assert len(render(made, form="line").splitlines()) == 1


def _figures(made: RunResult) -> dict[str, dict[str, str]]:
    """Read the latencies of the line: their statistics and texts."""
    found = {}
    for part in summary_line(made).split(" | "):
        if match := re.fullmatch(r"(TTFT|TPOT) (.*) (?:ms|s)", part):
            figures = re.findall(r"(mean|p\d+) (\S+)", match[2])
            found[match[1].lower()] = dict(figures)
    return found
