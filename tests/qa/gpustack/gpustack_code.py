"""GPUStack's code in an environment of its own, made on first use (900 MB): what it composes, and what it reads."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.qa.engines.environments import CACHE, Recipe, made

FOLDER = CACHE.parent / "gpustack"
RECIPE = Recipe("gpustack", (("gpustack==2.3.0",),))
SCRIPT = Path(__file__).with_name("gpustack_side.py")


class GPUStack:
    """GPUStack's worker, as far as a benchmark job is concerned.

    Args:
        programs: Those of its environment.
        state: A folder for its settings and logs.
    """

    def __init__(self, programs: Path, state: Path) -> None:
        self._python, self._state = str(programs / "python"), state

    @classmethod
    def installed(cls, state: Path) -> "GPUStack":
        """Make its environment, if it is not there.

        Raises:
            CannotBeMade: The package index does not have its packages.
        """
        return cls(made(RECIPE, FOLDER), state)

    def profiles(self) -> tuple[Path, dict[str, dict[str, Any]]]:
        """Return the file of the profiles that it ships, and the profiles by name."""
        found = self._run("profiles")
        return Path(found["file"]), found["profiles"]

    def command_line(self, columns: dict[str, Any], **places: Any) -> list[str]:
        """Compose the words of a job.

        Args:
            columns: Of the benchmark, as its form sends them.
            places: target, processor, folder and progress; backend_parameters of the model.
        """
        words: list[str] = self._run("compose", json.dumps(places, default=str), json.dumps(columns))
        return words

    def read(self, folder: Path, columns: dict[str, Any]) -> dict[str, Any]:
        """Return what its worker makes of the files of a job: see `gpustack_side.read`."""
        found: dict[str, Any] = self._run("read", str(folder), json.dumps(columns))
        return found

    def _run(self, *words: str) -> Any:
        environment = os.environ | {"HOME": str(self._state), "HF_HUB_OFFLINE": "1"}
        done = subprocess.run(
            [self._python, str(SCRIPT), *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])
