"""Checks: statements about whether a run may be believed, and the verdict that follows from them."""

from loadgen.checks.accounting import accounting
from loadgen.checks.check import Check, Verdict, verdict
from loadgen.checks.sending import sending

__all__ = ["Check", "Verdict", "accounting", "sending", "verdict"]
