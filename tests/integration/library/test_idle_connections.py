"""Servers that close idle connections without announcing it; `make qa` has more of them."""

import pytest

from tests.qa.idle_connections import idle


@pytest.mark.timeout(120)
def test_no_request_is_lost_to_a_server_that_closes_idle_connections() -> None:
    with idle.server(keep_alive_s=1.2, token_ms=25, delay_ms=2) as url:
        done = idle.run(url, request_rate=60.0, num_prompts=300, random_output_len="20:100")
    assert done.outcomes == {"ok": 300}
    assert done.reused >= 150
