"""Measurers: who measures a run with these settings.

Light to import, as `measurer` is.
"""

from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.runner.coordinator import Measurer, OwnLoop
from loadgen.runner.workers import Workers, count


def of(settings: RunSettings, *, own_loop: bool = False) -> AbstractAsyncContextManager[Measurer]:
    """Whoever is to carry out a run with these settings, which have been checked, for as long as its context lasts.

    Args:
        settings: Of the run.
        own_loop: Whether the running loop is to measure, where one is enough.

    Raises:
        BadInput: Several cannot write the records where they are wanted.
    """
    if settings.ray is not None:
        _check_records(settings, "--ray")
        from loadgen.runner.cluster.driver import open_nodes

        return open_nodes(settings)
    number = count(settings)
    if number > 1:
        _check_records(settings, "--workers")
    return nullcontext(OwnLoop()) if own_loop and number == 1 else Workers(number)


def _check_records(settings: RunSettings, shared_by: str) -> None:
    """Each writes a file of its own first, and they are one in the end: a pipe or a device cannot be that."""
    if settings.records is not None and (path := Path(settings.records)).exists() and not path.is_file():
        problem = f"{path} is no regular file, which several can make together"
        raise BadInput("--records", problem, f"name a file, or leave {shared_by} out")
