"""Worker: a process that carries out one stripe of a run in its own event loop and draws nothing.

`python -m loadgen.runner.worker_main` reads messages: a Job, upon which it opens connections, then what its
`Measurement` is to do, a name and arguments. Each of STEPS is answered with how far it is then, and with what came of
it, or the error that stopped it; `stop` and `abort` may come at any time and have no answer. In between it tells
Progress several times a second, as long as somebody reads it.
"""

import asyncio
import sys
from typing import Any

from loadgen.errors import LoadgenError
from loadgen.metrics.records import shards
from loadgen.runner.coordinator import PROGRESS_S
from loadgen.runner.measurement import Job, Measured, Measurement
from loadgen.runner.participant import STEPS
from loadgen.util import child_process, log_setup, machine
from loadgen.util.child_process import PipeWriter
from loadgen.util.tasks import background_tasks

LINGER_NS = 10_000_000  # nothing else in this process is more urgent
GONE = "the process that started the run has gone"


async def work(job: Job, commands: asyncio.StreamReader, writer: PipeWriter) -> None:
    """Carry out a job, step by step."""
    steps: asyncio.Queue[tuple[Any, ...] | None] = asyncio.Queue()
    measurement = Measurement(job, LINGER_NS)
    async with measurement, background_tasks(_tell_progress(measurement, writer), obey(measurement, commands, steps)):
        await measurement.open()
        while step := await steps.get():
            name, *arguments = step
            found: Measured | None = await getattr(measurement, name)(*arguments)
            if found is not None and commands.at_eof() and job.records and found.records_error is None:
                shards.finish(job.records, found.ending)  # nobody else will
            writer.send(measurement.progress())
            writer.send(found)


async def obey(
    measurement: Measurement, commands: asyncio.StreamReader, steps: "asyncio.Queue[tuple[Any, ...] | None]"
) -> None:
    """Tell a measurement to end when the command says so, or goes; put its steps into `steps`, and None at their end.

    Raises:
        ValueError: A step that is none.
    """
    while line := await commands.readline():
        match child_process.decode(line):
            case "stop", reason:
                measurement.stop(reason)
            case "abort", reason:
                measurement.abort(reason)
            case step if step[0] in STEPS:
                steps.put_nowait(step)
            case unknown:
                raise ValueError(unknown)
    measurement.abort(GONE)
    steps.put_nowait(None)


async def _tell_progress(measurement: Measurement, writer: PipeWriter) -> None:
    while True:
        await asyncio.sleep(PROGRESS_S)
        writer.try_send(measurement.progress())


async def main() -> None:
    """Carry out the job on standard input."""
    # Imported while others still get ready: aiohttp takes a third of a second.
    import aiohttp  # noqa: F401

    machine.raise_open_files_limit()
    commands, writer = asyncio.StreamReader(limit=1 << 24), PipeWriter(sys.stdout.fileno())
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    line = await commands.readline()
    if line:
        job: Job = child_process.decode(line)
        log_setup.to_stderr(job.settings.log_level)
        try:
            await work(job, commands, writer)
        except LoadgenError as error:
            writer.send(error)


if __name__ == "__main__":
    import uvloop

    uvloop.run(main())
