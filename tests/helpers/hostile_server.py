"""A server that repeats what it was told in confidence, and says what would move a terminal; and
a run against it.
"""

import asyncio
import contextlib
import itertools
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import orjson

from loadgen.engines.sim.http1 import whole
from loadgen.testing import replies
from tests.helpers.command_line import SHORT, TOKENIZER, environment
from tests.helpers.response_bytes import answer, delta, event, streamed
from tests.helpers.scripted_server import Script, read_request, serving

KEY = "sk-Zq3vN8wT1yB6mR4x"
OTHER = 'tenant "9f8e7d6c"'
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe\r\n[red]"
UNSAFE = re.compile("[^\n -~]")


def models(name: str) -> bytes:
    return whole(200, replies.models(name), f"Server: hostile {KEY}")


def echo() -> Script:
    """Answers every request with its own head, in a different place of each answer."""
    turns = itertools.count()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while ask := await read_request(reader):
            told = ask.head.decode("latin-1") + ESCAPES
            if ask.path == "/v1/models":
                writer.write(models("model" + ESCAPES))
            elif ask.method == "GET":
                writer.write(whole(200, orjson.dumps({"version": told})))
            else:
                lies = answers(told)
                writer.write(lies[next(turns) % len(lies)])
            await writer.drain()

    return script


def answers(told: str) -> list[bytes]:
    cut = b"x" * (1024 - len(KEY) // 2) + KEY.encode()
    return [
        whole(401, told.encode(), kind="text/plain"),
        whole(403, orjson.dumps({"error": told})),
        whole(500, cut, kind="text/plain"),
        streamed(delta(content="a") + delta(f"stop {KEY}{ESCAPES}")),
        streamed(
            event(choices=[{"text": "a", "finish_reason": "stop", "matched_stop": told}]), 10_000
        ),
        streamed(delta(content="a") + event(error={"message": told})),
        streamed(delta(content="a") + b"data: no JSON " + KEY.encode() + b"\n\n"),
        streamed(answer(f"told: {told}")),
        streamed(answer("your key is ", KEY[:7], KEY[7:], '\\"', " was it not?")),
        whole(200, told.encode(), "Content-Encoding: gzip"),
    ]


@contextlib.asynccontextmanager
async def run_against(
    script: Script, folder: Path, *flags: str, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`loadgen run` against a server that does what `script` says; its temporary and state
    folders lie in `folder`.
    """
    (folder / "tmp").mkdir()
    own = {"TMPDIR": str(folder / "tmp"), "XDG_STATE_HOME": str(folder / "state")}
    async with serving(script) as url:
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "loadgen",
                "run",
                "--base-url",
                url,
                "--backend",
                "openai-chat",
            ),
            *("--tokenizer", TOKENIZER, *SHORT, *flags),
            cwd=folder,
            env=environment() | own | variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.communicate()
            process._transport.close()  # type: ignore[attr-defined]


def files(folder: Path) -> dict[str, bytes]:
    """All files below a folder and what is in them."""
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
