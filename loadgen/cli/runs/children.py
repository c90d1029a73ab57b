"""The processes of a command's first run, forked before its event loop starts."""

from loadgen.cli.import_guard import single_threaded
from loadgen.config.settings import RunSettings
from loadgen.runner.workers import worker_count
from loadgen.util.forked_child import fork_ahead

WORKER, PREPARER = "loadgen.runner.worker_main", "loadgen.runner.prepare_main"


def fork_children(settings: RunSettings) -> None:
    """Fork the processes that a run with these settings needs, each once what it shares with the command is imported.

    A measuring process needs no NumPy, and is forked before it is imported.
    """
    if settings.ray is not None:
        return
    import loadgen.runner.job

    for _ in range(worker_count(settings)):
        fork_ahead(WORKER)
    with single_threaded():
        import loadgen.runner.run  # noqa: F401 - what the preparer and the command need

        fork_ahead(PREPARER)
