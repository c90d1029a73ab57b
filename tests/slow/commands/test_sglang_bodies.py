"""With --compat sglang, the measured requests are those that SGLang's `bench_serving` sent with
the same flags.

`make test-all` compares one case in three, and `make qa` the others.
"""

import json
from pathlib import Path

import pytest

from tests.helpers.command_line import environment
from tests.helpers.sent_bodies import bodies
from tests.helpers.sglang_cases import CASES, COUNT, RECORDED, measured, own, write_files
from tests.helpers.thinning import every_nth

SENT = json.loads(RECORDED.read_text())["bodies"]


@pytest.mark.parametrize("case", every_nth([*CASES], step=3))
async def test_each_body_is_that_of_sglang(case: str, tmp_path: Path) -> None:
    write_files(tmp_path)
    (ours,) = await bodies(own(case, tmp_path), env=environment())
    assert len(ours) == COUNT + 1
    assert measured(case, ours) == SENT[case]
