"""A study with something unusable in any place is refused in plain words."""

import re
from collections.abc import Iterator
from typing import Any

from loadgen.lab.study.spec.strict_model import AtFault, convert
from loadgen.lab.study.spec.study import Study
from tests.helpers.study_files import WHOLE


def spoilt(part: Any) -> Iterator[Any]:
    """Yield copies of a part of a study, each with something unusable in one place."""
    yield from (None, 3, -1, 10**30, 1.5, "", "x", [], [[]], {}, {"x": 1}, True, ["x"] * 1001)
    if isinstance(part, dict | list):
        for place in part if isinstance(part, dict) else range(len(part)):
            for bad in spoilt(part[place]):
                whole = part.copy()
                whole[place] = bad
                yield whole


def test_whatever_is_not_usable_is_refused_in_plain_words() -> None:
    """Every part of a study, spoilt in many ways: no traceback, and no words of the library that
    checks them.
    """
    refusals = set()
    for part in WHOLE:
        for bad in spoilt(WHOLE[part]):
            try:
                convert(WHOLE | {part: bad}, Study)
            except AtFault as error:
                refusals.add(str(error))
    assert len(refusals) > 200
    assert [
        said
        for said in refusals
        if re.search(r"(?i)input should|should have|instance of|valid (string|list)", said)
    ] == []
