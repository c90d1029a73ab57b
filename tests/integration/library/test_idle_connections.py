"""Servers that close idle connections without notice; `make qa` covers more of them."""

import pytest

from tests.qa.idle_connections import idle


@pytest.mark.timeout(120)
def test_idle_closes_by_the_server_lose_no_request() -> None:
    with idle.server(keep_alive_s=1.2, token_ms=25, delay_ms=2) as url:
        done = idle.run(url, request_rate=60.0, num_prompts=300, random_output_len="20:100")
    assert done.outcomes == {"ok": 300}
    assert done.reused >= 150
