"""No request is lost to a server that closes idle connections: real uvicorn, near and far, in open and closed loops."""

from typing import Any

import pytest

from tests.qa.idle_connections import idle

pytestmark = pytest.mark.timeout(300)
# Answers take less than a second in the open loop, and about as long as an idle connection lasts in the closed one.
OPEN = {"request_rate": 60.0, "num_prompts": 830, "random_output_len": "100:400"}
CLOSED = {"max_concurrency": 100, "num_prompts": 840, "random_output_len": "400:800"}


@pytest.mark.parametrize("delay_ms", [0, 2, 20])
@pytest.mark.parametrize("keep_alive_s", [1.5, 5])
@pytest.mark.parametrize("load", [OPEN, CLOSED], ids=["open", "closed"])
def test_no_request_is_lost_to_a_close(load: dict[str, Any], keep_alive_s: float, delay_ms: float) -> None:
    token_ms = 25 if load is OPEN else 16 * keep_alive_s
    with idle.server(keep_alive_s, token_ms, delay_ms) as url:
        done = idle.run(url, **load)
    assert done.outcomes == {"ok": load["num_prompts"]}
    assert done.reused >= load["num_prompts"] / 2


def test_no_request_waits_for_a_handshake_at_a_low_rate() -> None:
    with idle.server(3600, 25, 0) as url:
        done = idle.run(url, request_rate=0.5, duration=60.0, random_output_len=100)
    assert set(done.outcomes) == {"ok"}
    assert done.late == 0
