"""Checks: statements about whether a run may be believed, and the verdict that follows from them."""

from loadgen.checks.accounting import accounting
from loadgen.checks.check import Check, Verdict, verdict
from loadgen.checks.distortion import distortion
from loadgen.checks.impossible import impossible
from loadgen.checks.origin import origin
from loadgen.checks.sending import sending
from loadgen.checks.sufficiency import STEADY, sufficiency, unfinished_p99_ns
from loadgen.checks.workload import repeated_prompts, workload
from loadgen.evidence import Evidence

__all__ = [
    "STEADY",
    "Check",
    "Verdict",
    "accounting",
    "distortion",
    "examine",
    "impossible",
    "origin",
    "repeated_prompts",
    "sending",
    "sufficiency",
    "unfinished_p99_ns",
    "verdict",
    "workload",
]

GROUPS = (accounting, sending, distortion, sufficiency, workload, impossible, origin)  # A to G


def examine(evidence: Evidence) -> list[Check]:
    """All checks of a run, group by group."""
    return [check for group in GROUPS for check in group(evidence)]
