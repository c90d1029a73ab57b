"""A chat server on real uvicorn, as vLLM and SGLang are, which closes idle connections without
announcing it.

    python -m tests.qa.idle_connections.uvicorn_server KEEP_ALIVE_S TOKEN_MS

GET /counts tells how many requests it has answered, and on how many connections.
"""

import asyncio
import json
import socket
import sys
from typing import Any

import uvicorn

HEAD = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "uvicorn"}


class Chat:
    """Streams a tenth of the tokens that are asked for, one each `token_s`; an ASGI application.

    Answers that end early leave more connections idle than the client has expected.
    """

    def __init__(self, token_s: float) -> None:
        self._token_s = token_s
        self._requests = 0
        self._connections: set[Any] = set()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/v1/chat/completions":
            await self._chat(scope, receive, send)
        elif scope["path"] == "/v1/models":
            await _json(send, {"data": [{"id": "uvicorn", "root": "uvicorn"}]})
        elif scope["path"] == "/counts":
            await _json(send, {"requests": self._requests, "connections": len(self._connections)})
        else:
            await _json(send, {}, 404)

    async def _chat(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        count = max(1, json.loads(body)["max_completion_tokens"] // 10)
        self._requests += 1
        self._connections.add(scope["client"])
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-type", b"text/event-stream")],
            }
        )
        for number in range(count):
            await asyncio.sleep(self._token_s)
            last = number == count - 1
            choice = {
                "index": 0,
                "delta": {"content": "a"},
                "finish_reason": "stop" if last else None,
            }
            await _event(send, HEAD | {"choices": [choice]})
        usage = {"prompt_tokens": 1, "completion_tokens": count, "total_tokens": 1 + count}
        await _event(send, HEAD | {"choices": [], "usage": usage})
        await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})


async def _event(send: Any, event: dict[str, Any]) -> None:
    body = b"data: " + json.dumps(event).encode() + b"\n\n"
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _json(send: Any, content: dict[str, Any], status: int = 200) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", b"application/json")],
        }
    )
    await send({"type": "http.response.body", "body": json.dumps(content).encode()})


def main() -> None:
    keep_alive_s, token_ms = map(float, sys.argv[1:])
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        print(f"listening on http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(Chat(token_ms / 1e3), log_level="error", lifespan="off")
        config.timeout_keep_alive = keep_alive_s  # type: ignore[assignment] - declared in whole seconds; a timer takes any
        asyncio.run(uvicorn.Server(config).serve(sockets=[listening]))


if __name__ == "__main__":
    main()
