"""Audit of published results."""

from pathlib import Path

from loadgen.analysis import audit as rules
from loadgen.analysis.audit import Finding
from loadgen.library.accepted import check_path


def audit(*paths: str | Path) -> list[Finding]:
    """Find inconsistent numbers in published results, as `loadgen audit` does (docs/audit.md).

    Args:
        *paths: Markdown pages or texts that contain benchmark output; or JSON results of loadgen, vllm bench serve,
            SGLang's bench_serving (JSON lines) or guidellm. Several are also held against each other.

    Returns:
        The findings in the order of the files: `rule`, `place`, what it `says`, what it `should_be`, and `why`. With
        `note`, the numbers can be true, but do not show what they seem to. Findings of one `rule` with the same `cause`
        have one origin.

    Raises:
        BadInput: One of them cannot be read, or has no result and no table.
    """
    for path in paths:
        check_path("path", path)
    return rules.audit(*map(str, paths))
