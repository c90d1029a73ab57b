"""`loadgen benchmark-runner benchmark run`: execute a benchmark job of GPUStack."""

from loadgen.cli.import_guard import single_threaded
from loadgen.errors import BadInput, Flags, spelled
from loadgen.lab.gpustack import arguments
from loadgen.util import terminal_text


def main(argv: list[str]) -> int:
    """Execute the runs one after the other until one fails, or the search; returns the exit
    code.
    """
    words = argv
    if argv not in (["-h"], ["--help"]):
        if argv[:1] != ["benchmark"]:
            raise BadInput(
                argv[0] if argv else "benchmark run",
                "unknown command" if argv else "missing",
                "write loadgen benchmark-runner benchmark run FLAGS",
            )
        words = argv[2:] if argv[1:2] == ["run"] else argv[1:]  # `run` may be left out
    flags = arguments.parse(words)  # --help ends here, before any slow import
    import asyncio

    from loadgen.lab.gpustack.job import Job

    with spelled(Flags(arguments.FLAG_NAMES)):
        job = Job.of(flags)
        terminal_text.log_to_stderr("warning")
        folder = job.output.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            problem = f"{folder} cannot be created ({error.strerror})"
            raise BadInput("--output-dir", problem, "choose another folder") from error
        if job.auto_tune is None:
            from loadgen.lab.gpustack.job_runs import StepRuns

            return asyncio.run(StepRuns(job).execute())
        with single_threaded():
            from loadgen.lab.gpustack.job_runs import SearchRuns

        return SearchRuns(job).execute()
