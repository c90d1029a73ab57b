"""A server that answers so many requests at a time and refuses the others, as gateways with a
limit do.
"""

import asyncio
import sys

from aiohttp import web

from loadgen.testing.replies import DONE, delta, usage

TOKENS = 8
TAKES_S = 0.04
REFUSES_S = 0.01


class LimitedServer:
    """Answers with TOKENS tokens in TAKES_S.

    Args:
        limit: Requests that are answered at the same time; more are refused with 503.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._running = limit, 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        await request.read()
        if self._running >= self._limit:
            await asyncio.sleep(REFUSES_S)
            return web.json_response({"error": {"message": "too many requests"}}, status=503)
        self._running += 1
        try:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for _ in range(TOKENS):
                await asyncio.sleep(TAKES_S / TOKENS)
                await response.write(delta(content="a"))
            await response.write(
                delta("length") + usage(prompt_tokens=16, completion_tokens=TOKENS) + DONE
            )
            return response
        finally:
            self._running -= 1


async def serve(limit: int) -> None:
    """Serve until the process ends, and print the URL first."""
    server = LimitedServer(limit)
    application = web.Application()
    application.router.add_post("/v1/chat/completions", server.answer)
    application.router.add_get(
        "/v1/models", lambda request: web.json_response({"data": [{"id": "sim"}]})
    )
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
