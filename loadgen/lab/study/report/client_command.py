"""The command that sends a load: `vllm bench serve` where a release of it does the same, else
`loadgen run`.
"""

import shlex
from typing import Any

from loadgen.cli import compat
from loadgen.config import serialize
from loadgen.config.option import flag
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints, vllm_load

# What decides neither which requests are sent nor when: the name of a load, which its lengths say,
# how long the server is waited for, and the path, which vLLM's own tool wants beside the API.
NO_LOAD = ("workload", "ready_check_timeout_sec", "endpoint")


def client_command(run: RunSettings) -> tuple[str, str]:
    """Return a command, and the release of vLLM that it is of; empty: it is loadgen's.

    Args:
        run: The settings of the run.
    """
    given = serialize.explicit(run)
    for release in vllm_load.RELEASES:
        names = compat.tool_of(release).names
        fields = {name: value for name, value in given.items() if flag(name) in names}
        fields = {name: value for name, value in fields.items() if name not in NO_LOAD}
        if len(run.urls) > 1 or not _same(release, fields, run):
            continue
        # What the release does by itself need not be said.
        for name in [name for name in fields if name != "dataset_name"]:
            fewer = {other: value for other, value in fields.items() if other != name}
            fields = fewer if _same(release, fewer, run) else fields
        words = serialize.flags(RunSettings(**fields))
        words += [] if flag("dataset_name") in words else [flag("dataset_name"), run.dataset_name]
        words += [flag("endpoint"), run.endpoint or endpoints.find(run).path]
        return f"vllm bench serve {shlex.join(words)}", release
    return f"loadgen run {shlex.join(serialize.flags(run))}", ""


def _same(release: str, fields: dict[str, Any], run: RunSettings) -> bool:
    try:
        read = RunSettings(**compat.apply(release, fields))
    except BadInput:
        return False
    ignored = {name: getattr(run, name) for name in NO_LOAD}
    return read.replace(**ignored) == run
