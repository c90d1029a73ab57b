"""The run that other tools' definitions are applied to."""

import pytest

from loadgen.config.settings import RunSettings
from loadgen.errors import BadInput
from loadgen.lab.tools.emulate.recorded_run import RecordedRun


@pytest.mark.parametrize("backend", ["anthropic", "openai-responses"])
def test_a_run_of_an_api_whose_reading_is_not_known_is_refused(backend: str) -> None:
    with pytest.raises(
        BadInput, match=f"^--as: what the tools print for the backend {backend} is not known"
    ):
        RecordedRun(RunSettings(backend=backend), 0, [])
