"""States of checks, as tests of check groups compare them."""

from collections.abc import Mapping

from loadgen.checks import Check


def failed_checks(checks: Mapping[str, Check]) -> list[str]:
    """Return the sorted names of the checks that failed; one that does not apply has not failed."""
    return sorted(name for name, check in checks.items() if check.ok is False)
