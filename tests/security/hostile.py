"""A server that repeats what it was told in confidence, and says what would move a terminal; and a run against it."""

import asyncio
import contextlib
import itertools
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import orjson

from tests.commands.calling import SHORT, TOKENIZER, environment
from tests.faults.servers import Script, serving
from tests.wire.bytes_of import delta, event, streamed

KEY = "sk-Zq3vN8wT1yB6mR4x"
OTHER = 'tenant "9f8e7d6c"'
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202egnp.exe\r\n[red]"
UNSAFE = re.compile("[^\n -~]")


async def request(reader: asyncio.StreamReader) -> bytes:
    """The head of the next request, its body read over; empty at the end of the connection."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    return head


def reply(status: int, body: bytes, *lines: bytes) -> bytes:
    head = [b"HTTP/1.1 %d Yes" % status, b"Content-Length: %d" % len(body), *lines]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def models(name: str) -> bytes:
    return reply(200, orjson.dumps({"data": [{"id": name}]}), b"Server: hostile " + KEY.encode())


def echo() -> Script:
    """Answers every request with its own head, in a different place of each answer."""
    turns = itertools.count()

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request(reader):
            told = head.decode("latin-1") + ESCAPES
            if head.startswith(b"GET /v1/models"):
                writer.write(models("model" + ESCAPES))
            elif head.startswith(b"GET"):
                writer.write(reply(200, orjson.dumps({"version": told})))
            else:
                replies = answers(told)
                writer.write(replies[next(turns) % len(replies)])
            await writer.drain()

    return script


def answers(told: str) -> list[bytes]:
    cut = b"x" * (1024 - len(KEY) // 2) + KEY.encode()
    return [
        reply(401, told.encode()),
        reply(403, orjson.dumps({"error": told}), b"Content-Type: application/json"),
        reply(500, cut),
        streamed(delta(content="a") + delta(f"stop {KEY}{ESCAPES}")),
        streamed(delta(content="a") + event(error={"message": told})),
        streamed(delta(content="a") + b"data: no JSON " + KEY.encode() + b"\n\n"),
        reply(200, told.encode(), b"Content-Encoding: gzip"),
    ]


@contextlib.asynccontextmanager
async def run_against(
    script: Script, folder: Path, *flags: str, **variables: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """`loadgen run` against a server that does what `script` says; its temporary and state folders lie in `folder`."""
    (folder / "tmp").mkdir()
    own = {"TMPDIR": str(folder / "tmp"), "XDG_STATE_HOME": str(folder / "state")}
    async with serving(script) as url:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "loadgen", "run", "--base-url", url, "--backend", "openai-chat"),
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
