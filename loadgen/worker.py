"""Worker: a process that measures one job in its own event loop and draws nothing.

`python -m loadgen.worker` reads a line with a Job, then `go` once the requests are prepared, `stop REASON` and
`abort REASON`. It answers with messages: Progress several times a second, and at the end a Measured, or the error
that stopped it.
"""

import asyncio
import contextlib
import sys
from typing import Any

from loadgen import logs, machine, messages
from loadgen.beside import beside
from loadgen.errors import LoadgenError
from loadgen.measurement import Job
from loadgen.measurer import OwnLoop

LINGER_NS = 10_000_000  # nothing else in this process is more urgent


async def work(job: Job, commands: asyncio.StreamReader) -> Any:
    """Carry out a job; returns what is to be told at the end."""
    prepared = asyncio.get_running_loop().create_future()
    own = OwnLoop(LINGER_NS)
    async with beside(_obey(own, commands, prepared)):
        try:
            return await own.measure(job, prepared, tell)
        except LoadgenError as error:
            return error


async def _obey(own: OwnLoop, commands: asyncio.StreamReader, prepared: "asyncio.Future[None]") -> None:
    while line := await commands.readline():
        match line.decode().strip().partition(" "):
            case "go", _, _:
                prepared.set_result(None)
            case "stop", _, reason:
                own.stop(reason)
            case "abort", _, reason:
                own.abort(reason)
    prepared.cancel()
    own.abort("the process that started the run has gone")


def tell(message: Any) -> None:
    """Send a message to the process that started this one."""
    sys.stdout.buffer.write(messages.encode(message))
    sys.stdout.buffer.flush()


async def main() -> None:
    """Carry out the job on standard input."""
    # Imported while others still get ready: aiohttp takes a third of a second.
    import aiohttp  # noqa: F401

    machine.raise_open_files_limit()
    commands = asyncio.StreamReader(limit=1 << 24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    line = await commands.readline()
    if line:
        # Once the process that started this one has gone, nobody is left to be told; the records are.
        with contextlib.suppress(asyncio.CancelledError, BrokenPipeError):
            job: Job = messages.decode(line)
            logs.to_stderr(job.settings.log_level)
            tell(await work(job, commands))


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
