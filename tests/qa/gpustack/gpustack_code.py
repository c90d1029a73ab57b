"""GPUStack's code in an environment of its own, made on first use (900 MB): what it composes,
and what it reads.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.engines.environments import CACHE, Recipe, made

FOLDER = CACHE.parent / "gpustack"
RECIPE = Recipe("gpustack", (("gpustack==2.3.0",),))
SCRIPT = Path(__file__).with_name("gpustack_side.py")


class GPUStack:
    """GPUStack's worker, as far as a benchmark job is concerned: its interpreter, which answers
    line by line.

    Args:
        process: The interpreter, with pipes.
    """

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    @classmethod
    @contextlib.contextmanager
    def started(cls, state: Path, **environment: str) -> "Iterator[GPUStack]":
        """Make its environment, if it is not there, and start its interpreter.

        Args:
            state: A folder for its settings.
            environment: Further variables.

        Raises:
            CannotBeMade: The package index does not have its packages.
        """
        command = [str(made(RECIPE, FOLDER) / "python"), str(SCRIPT)]
        variables = os.environ | {"HOME": str(state), "HF_HUB_OFFLINE": "1"} | environment
        with subprocess.Popen(
            command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            yield cls(process)
            assert process.stdin is not None
            process.stdin.close()

    def profiles(self) -> tuple[Path, dict[str, dict[str, Any]]]:
        """Return the file of the profiles that it ships, and the profiles by name."""
        found = self._ask("profiles")
        return Path(found["file"]), found["profiles"]

    def command_line(self, columns: dict[str, Any], **places: Any) -> list[str]:
        """Compose the words of a job.

        Args:
            columns: Of the benchmark, as its form sends them.
            places: target, processor, folder and progress; backend_parameters of the model.
        """
        words: list[str] = self._ask("compose", places, columns)
        return words

    def read(self, folder: Path, columns: dict[str, Any]) -> dict[str, Any]:
        """Return what its worker makes of the files of a job: see `gpustack_side.read`."""
        found: dict[str, Any] = self._ask("read", str(folder), columns)
        return found

    def _ask(self, *question: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question, default=str) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "GPUStack's code raised; see stderr"
        return json.loads(answer)
