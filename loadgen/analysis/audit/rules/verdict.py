"""Verdict: what a tool said of its own run."""

from collections.abc import Iterator

from loadgen.analysis.audit.finding import Finding
from loadgen.analysis.audit.published import Published


def verdict(result: Published) -> Iterator[Finding]:
    """A run that its own tool does not believe is no result."""
    if result.verdict in ("INVALID", "SUSPECT"):
        why = "its own checks failed: `loadgen report` lists them"
        yield Finding(result.place, "verdict", result.verdict, "VALID", why, note=result.verdict == "SUSPECT")
