"""The worker process: carries out one partition of a run in its own event loop, and draws nothing.

`python -m loadgen.runner.worker_main` reads messages: ("begin", job), then the further STEPS of a
participant, each a name and arguments. Each step is answered with the progress after it, and with
its result or its error. A `Command` and its argument may come at any time and have no
answer. In between the process sends its progress several times a second, as long as the other side
reads it.
"""

import asyncio
import sys
from typing import Any

from loadgen.errors import LoadgenError
from loadgen.metrics.records.file import write_trailer
from loadgen.metrics.run_data import Measurement
from loadgen.metrics.snapshot import LoopTotals
from loadgen.runner.job import Job
from loadgen.runner.loop_runner import LoopRunner
from loadgen.runner.participant import STEPS
from loadgen.util import child_process, garbage_collection, machine, scheduling, terminal_text
from loadgen.util.child_process import LoopPipe, PipeWriter
from loadgen.util.partition import WHOLE
from loadgen.util.tasks import background_tasks, repeat

GONE = "the process that started the run has ended"


async def work(job: Job, commands: asyncio.StreamReader, writer: PipeWriter) -> None:
    """Carry out a job, step by step.

    Args:
        job: The job.
        commands: Further messages of the parent.
        writer: Sends progress and results to the parent.
    """
    steps: asyncio.Queue[tuple[Any, ...] | None] = asyncio.Queue()
    steps.put_nowait(("begin", job))
    runner = LoopRunner()
    reports = repeat(job.progress_period_s, lambda: writer.try_send(runner.progress()))
    async with runner, background_tasks(reports, handle_commands(runner, commands, steps)):
        while step := await steps.get():
            name, *arguments = step
            result: Measurement | None = await getattr(runner, name)(*arguments)
            if (
                result is not None
                and commands.at_eof()
                and job.shard
                and result.trailer.records_error is None
            ):
                # The coordinator is gone, and cannot write it.
                write_trailer(
                    job.shard,
                    result.trailer,
                    LoopTotals.of(result.snapshot),
                    job.settings.records if job.partition == WHOLE else None,
                )
            writer.send(runner.progress())
            writer.send(result)


async def handle_commands(
    runner: LoopRunner,
    commands: asyncio.StreamReader,
    steps: "asyncio.Queue[tuple[Any, ...] | None]",
) -> None:
    """Pass commands on to a runner, and steps into a queue; at the end of the commands abort, and
    put None there.

    Args:
        runner: Carries out the job.
        commands: The messages of the parent.
        steps: The queue of the steps.

    Raises:
        ValueError: It is neither a command nor a step.
    """
    while line := await commands.readline():
        match child_process.decode(line):
            case ("stop" | "abort" | "use") as command, argument:
                getattr(runner, command)(argument)
            case step if step[0] in STEPS:
                steps.put_nowait(step)
            case message:
                raise ValueError(message)
    runner.abort(GONE)
    steps.put_nowait(None)


async def main() -> None:
    """Carry out the job on standard input."""
    machine.raise_open_files_limit()
    commands, writer = asyncio.StreamReader(limit=1 << 24), PipeWriter(sys.stdout.fileno())
    loop = asyncio.get_running_loop()
    protocol = asyncio.StreamReaderProtocol(commands)
    await loop.connect_read_pipe(lambda: protocol, LoopPipe(sys.stdin.fileno()))
    line = await commands.readline()
    if line:
        job: Job = child_process.decode(line)[1]
        terminal_text.log_to_stderr(job.settings.log_level)
        try:
            await work(job, commands, writer)
        except LoadgenError as error:
            writer.send(error)


def run() -> None:
    """Run the process."""
    import uvloop

    child_process.name_process("worker")
    garbage_collection.collect_rarely()
    scheduling.wake_up_sooner()
    uvloop.run(main())


if __name__ == "__main__":
    run()
