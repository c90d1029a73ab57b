"""Audit of published results."""

from pathlib import Path

from loadgen.analysis import audit as rules
from loadgen.analysis.audit import Finding
from loadgen.library.accepted import check_path


def audit(path: str | Path) -> list[Finding]:
    """Find inconsistent numbers in a published result, as `loadgen audit` does (docs/audit.md).

    Args:
        path: A Markdown page or a text that contains benchmark output; or a JSON result of loadgen, vllm bench serve,
            SGLang's bench_serving (JSON lines) or guidellm.

    Returns:
        The findings in the order of the file: `rule`, `place`, what it `says`, what it `should_be`, and `why`. With
        `note`, the numbers can be true, but do not show what they seem to.

    Raises:
        BadInput: It cannot be read, or has no result and no table.
    """
    check_path("path", path)
    return rules.audit(str(path))
