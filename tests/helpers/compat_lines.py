"""The settings that a command line of another tool makes, or why it is refused."""

import pytest

from loadgen.cli import run_settings as config
from loadgen.cli.flags import run_settings
from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.workload import endpoints


def read(line: str) -> RunSettings:
    """The settings of a run as they are used, of flags in one line."""
    return endpoints.checked(config.settings(run_settings(line.split()))).implied()


def refusal(line: str) -> str:
    with pytest.raises(BadInput) as refused:
        read(line)
    return str(refused.value)
