"""Checks: statements about whether a run may be believed, and the verdict that follows from
them.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from loadgen.checks import server
from loadgen.checks.accounting import SERVER_HUNG, accounting
from loadgen.checks.check import Check, Verdict, reasons, verdict
from loadgen.checks.distortion import (
    CLIENT_ERROR,
    GAPS_BELOW_50_US,
    READ_TOGETHER,
    SHARED_CPU,
    TAKEN,
    distortion,
)
from loadgen.checks.impossible import impossible
from loadgen.checks.provenance import provenance
from loadgen.checks.sending import LATE_SENDS, OFF_SCHEDULE, sending
from loadgen.checks.sufficiency import (
    PILE_UP,
    TOO_FEW_FOR_SLO,
    sufficiency,
    unfinished_p99_ns,
)
from loadgen.checks.token_counts import (
    COUNTS_DISAGREE,
    EVENTS_BEYOND,
    FIRST_EVENT,
    NOT_STREAMED,
)
from loadgen.checks.workload import PAST_THE_END, TOKENS_PER_EVENT, repeated_prompts, workload
from loadgen.metrics.run_data import RunData

__all__ = [
    "BUSY_MACHINE",
    "CLIENT_ERROR",
    "EXPLAINED",
    "PAST_THE_END",
    "PILE_UP",
    "SERVER_HUNG",
    "TOO_FEW_FOR_SLO",
    "Check",
    "Verdict",
    "accounting",
    "distortion",
    "examine",
    "impossible",
    "provenance",
    "reasons",
    "repeated_prompts",
    "sending",
    "sufficiency",
    "unfinished_p99_ns",
    "verdict",
    "workload",
]


class Group(NamedTuple):
    """Checks that belong together.

    Attributes:
        about: What they ask, in a few words.
        check: Makes them of a run.
    """

    about: str
    check: Callable[[RunData], list[Check]]


GROUPS = {
    "A": Group("accounting", accounting),
    "B": Group("was everything sent on time?", sending),
    "C": Group("did the client distort the times?", distortion),
    "D": Group("are there enough values, and was the load steady?", sufficiency),
    "E": Group("was it the requested workload?", workload),
    "F": Group("are the numbers consistent?", impossible),
    "G": Group("can the run be reproduced?", provenance),
}


# The checks whose failure the symptoms of a busy client explain.
EXPLAINED = (LATE_SENDS, OFF_SCHEDULE, CLIENT_ERROR)
# Those that an idle machine passes, as far as nothing else is wrong.
BUSY_MACHINE = (*EXPLAINED, TAKEN, SHARED_CPU)
# Checks of the server's metrics are a part of these groups.
SERVER_CHECKS = {"C": server.distortion, "E": server.workload, "F": server.consistency}


# Checks of tokens and their times: none where answers come in one piece.
TOKEN_CHECKS = frozenset(
    (
        *(
            "answers miscounted",
            READ_TOGETHER,
            GAPS_BELOW_50_US,
            "output length off",
            PAST_THE_END,
            TOKENS_PER_EVENT,
            COUNTS_DISAGREE,
            EVENTS_BEYOND,
            NOT_STREAMED,
            FIRST_EVENT,
        ),
        "latencies disagree",
        "sums disagree",
        "peak below the mean",
        "median gap 0",
        "timeline tokens differ",
        *(server.TTFT, server.SOONER, server.TOKENS),
    )
)


def examine(run: RunData) -> list[Check]:
    """Make all checks of a run that apply to its API, group by group."""
    checks_of_run: list[Check] = []
    for letter, group in GROUPS.items():
        checks = group.check(run) + (SERVER_CHECKS[letter](run) if letter in SERVER_CHECKS else [])
        checks_of_run += [
            replace(check, group=letter)
            for check in checks
            if run.settings.streams
            or check.name not in TOKEN_CHECKS
            or (run.settings.generates and check.name == "output length off")
        ]
    return checks_of_run
