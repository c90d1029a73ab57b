"""The processes of a single run, forked by the command before its event loop starts."""

import os

from loadgen.cli.import_guard import single_threaded
from loadgen.config.settings import RunSettings
from loadgen.runner import facts_main, workers
from loadgen.util.forked_child import fork_ahead


def fork_children(settings: RunSettings) -> None:
    """Fork the processes that a run with these settings needs, each once what it shares with the command is imported.

    A measuring process needs no NumPy, and is forked before it is imported; so is the process that parses a tokenizer.
    """
    if settings.ray is not None:
        return
    if (unknown := facts_main.unknown_file(settings)) is not None:
        fork_ahead(facts_main.MODULE, os.fsencode(unknown) + b"\n")
    for _ in range(workers.worker_count(settings)):
        fork_ahead(workers.MODULE)
    with single_threaded():
        from loadgen.runner import preparer, run  # noqa: F401 - what the preparer and the command need

        fork_ahead(preparer.MODULE)
