"""How many of its cases a test tries: all of them, in `make unit` only some, and in `make
test-all` those that are not marked `qa_only`.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")
# Examples of a property in `make unit`; elsewhere as many as hypothesis has by default.
UNIT_EXAMPLES = 5
UNIT_CASES = 4  # of a parametrized test in `make unit`; elsewhere all of them


def is_thinned() -> bool:
    """Tell whether these are the tests of `make unit`."""
    return settings().max_examples == UNIT_EXAMPLES


def thinned(cases: Sequence[T], step: int) -> Sequence[T]:
    """Return all cases; in `make unit` only every `step`-th, from the first on."""
    return cases[::step] if is_thinned() else cases


def every_nth(cases: Sequence[Any], step: int) -> list[Any]:
    """Return the cases of a parametrized test: `make test-all` runs every `step`-th from the first
    on, and `make qa` the others.
    """
    return [case if number % step == 0 else _for_qa(case) for number, case in enumerate(cases)]


def _for_qa(case: Any) -> Any:
    if hasattr(case, "marks"):
        return pytest.param(*case.values, id=case.id, marks=[*case.marks, pytest.mark.qa_only])
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.qa_only)


def few_cases(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return, in their order, at most `UNIT_CASES` cases of each test, evenly spaced in its list;
    its first case is one of them.
    """
    cases_of = defaultdict(list)
    for item in items:
        cases_of[item.nodeid.partition("[")[0]].append(item)
    kept = set()
    for cases in cases_of.values():
        count = min(len(cases), UNIT_CASES)
        kept.update(cases[i * len(cases) // count] for i in range(count))
    return [item for item in items if item in kept]
