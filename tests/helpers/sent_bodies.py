"""The request bodies that commands send, as a server sees them; each gets a good answer of
`TOKENS` tokens.
"""

import asyncio
from pathlib import Path
from typing import Any

import orjson

from loadgen.engines.sim.http1 import Request, error_body, whole
from tests.helpers.response_bytes import DONE, answer, event, streamed
from tests.helpers.scripted_server import chatting, serving

TOKENS = 3
Body = dict[str, Any]


async def bodies(
    *commands: list[str], env: dict[str, str], folder: Path | None = None
) -> list[list[Body]]:
    """Run commands, with URL in place of the server's URL; returns the bodies of the answers that
    each asked for.

    Args:
        commands: The commands, each in words.
        env: Their environment.
        folder: Where they run, for those that write files of their own.
    """
    found: list[list[Body]] = []

    def reply(request: Request) -> bytes:
        if not request.path.endswith(
            ("/completions", "/generate")
        ):  # such as /tokenize, which some clients ask first
            return whole(404, error_body("not here", 404))
        body = orjson.loads(request.body)
        found[-1].append(body)
        if request.path == "/generate":
            return _generated(stream=body["stream"])
        if "messages" in body:
            return streamed(answer("a", "b", "c"))
        text, end = (
            event(choices=[{"index": 0, "text": "a", "finish_reason": why}])
            for why in (None, "length")
        )
        return streamed(TOKENS * text + end + DONE)

    async with serving(chatting(reply)) as url:
        for command in commands:
            found.append([])
            words = [word.replace("URL", url) for word in command]
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                *words, env=env, cwd=folder, stdout=pipe, stderr=pipe
            )
            out, err = await process.communicate()
            assert process.returncode in (0, 3), f"{words}: {(out + err)[-2000:].decode()}"
    return found


def _generated(*, stream: bool) -> bytes:
    """An answer of SGLang's own API; an event has the text of the whole answer so far."""
    reasons = [None] * (TOKENS - 1) + [{"type": "length", "length": TOKENS}]
    parts = [
        {
            "text": count * "a",
            "meta_info": {"completion_tokens": count, "prompt_tokens": 3, "finish_reason": reason},
        }
        for count, reason in enumerate(reasons, 1)
    ]
    return (
        streamed(b"".join(event(**part) for part in parts) + DONE)
        if stream
        else whole(200, orjson.dumps(parts[-1]))
    )
