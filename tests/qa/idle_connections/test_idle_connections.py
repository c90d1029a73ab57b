"""Servers that close idle connections lose no request: real uvicorn, near and far, both loops."""

import math
from typing import Any

import pytest

from tests.qa.idle_connections import idle

pytestmark = pytest.mark.timeout(300)
# Answers take less than a second in the open loop, and about as long as an idle connection lasts in
# the closed one.
OPEN = {"request_rate": 60.0, "num_prompts": 830, "random_output_len": "100:400"}
CLOSED = {"max_concurrency": 100, "num_prompts": 840, "random_output_len": "400:800"}


@pytest.mark.parametrize("delay_ms", [0, 2, 20])
@pytest.mark.parametrize("keep_alive_s", [1.5, 5])
@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=["open", "closed"])
def test_idle_closes_lose_no_request(
    load: dict[str, Any], keep_alive_s: float, delay_ms: float
) -> None:
    token_ms = 25 if load is OPEN else 16 * keep_alive_s
    with idle.server(keep_alive_s, token_ms, delay_ms) as url:
        done = idle.run(url, **load)
    assert done.outcomes == {"ok": load["num_prompts"]}
    assert done.reused >= load["num_prompts"] / 2


def test_requests_at_a_low_rate_use_one_connection_beside_the_witness() -> None:
    with idle.server(3600, 25, 0) as url:
        done = idle.run(url, request_rate=0.5, burstiness=math.inf, duration=60.0)
    assert done.outcomes == {"ok": 30}
    assert done.late == 2
