"""A server is ready with its first token; one that completes nothing, with an embedding or a
score.
"""

import asyncio
import errno

import pytest

from loadgen.engines.kinds.engine import Probes
from loadgen.engines.launch import readiness
from loadgen.engines.launch.readiness import NoNetwork, NoToken, health_problem, readiness_problem
from loadgen.engines.sim.http1 import Request, whole
from loadgen.errors import EngineError, Unreachable
from tests.helpers.scripted_server import chatting, serving

COMPLETIONS = ["/v1/completions", "/v1/chat/completions"]


class Pooling:
    """Knows these paths alone.

    Attributes:
        asked: The paths that were asked.
    """

    def __init__(self, *paths: str) -> None:
        self.paths, self.asked = paths, list[str]()

    def reply(self, ask: Request) -> bytes:
        self.asked.append(ask.path)
        return whole(200, b'{"data":[]}') if ask.path in self.paths else whole(404, b"{}")


@pytest.mark.parametrize("path", ["/v1/embeddings", "/pooling", "/rerank"])
async def test_an_embedding_or_score_is_enough(path: str) -> None:
    server = Pooling(path)
    async with serving(chatting(server.reply)) as url:
        assert await asyncio.to_thread(readiness_problem, url, "m", 5.0, int) is None
    assert server.asked[:2] == COMPLETIONS
    assert server.asked[-1] == path


async def test_completions_are_asked_first() -> None:
    server = Pooling("/v1/completions", "/v1/embeddings")
    async with serving(chatting(server.reply)) as url:
        with pytest.raises(NoToken):
            await asyncio.to_thread(readiness_problem, url, "m", 5.0, int)
    assert server.asked == COMPLETIONS[:1]


async def test_a_server_that_answers_nothing_is_refused() -> None:
    async with serving(chatting(Pooling().reply)) as url:
        with pytest.raises(EngineError):
            await asyncio.to_thread(readiness_problem, url, "m", 5.0, int)


def test_an_address_without_a_network_will_never_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(url: str, *_: object, **__: object) -> None:
        raise Unreachable(f"{url}: no network") from OSError(
            errno.ENETUNREACH, "Network is unreachable"
        )

    monkeypatch.setattr(readiness, "request", unreachable)
    with pytest.raises(NoNetwork, match="ip link set lo up"):
        health_problem("http://127.0.0.1:1", Probes())
