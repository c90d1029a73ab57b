"""Verdict: what a tool said of its own run."""

from loadgen.lab.audit.finding import Finding, Findings
from loadgen.lab.audit.published import Published


def verdict(result: Published) -> Findings:
    """A run that its own tool does not believe is no result."""
    if result.verdict in ("INVALID", "SUSPECT"):
        why = "its own checks failed: `loadgen report` lists them"
        yield Finding(result.place, "verdict", result.verdict, "VALID", why, note=result.verdict == "SUSPECT")
