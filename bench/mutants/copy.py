"""A copy of the source in which a mutant can live, and where tests and runs see no other."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson

from bench.mutants.mutant import Check, Edit, Test
from tests.helpers.source import ROOT

PARTS = ("loadgen", "engines", "bench", "docs", "tests", "pyproject.toml", "setup.py", "README.md")
MAX_S = 300


class Copy:
    """The source at `folder`, built in place; `loadgen` holds `engines` there, as it does
    installed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(
                    ROOT / part,
                    folder / part,
                    symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__"),
                )
            else:
                shutil.copy(ROOT / part, folder / part)

    def edit(self, edits: tuple[Edit, ...]) -> None:
        """Make the edits and build what is compiled.

        Raises:
            LookupError: An edit no longer fits the source: the mutant must follow it.
        """
        for edit in edits:
            path = self.folder / edit.file
            text = path.read_text()
            if text.count(edit.old) != 1:
                raise LookupError(f"{edit.file} holds {text.count(edit.old)} times: {edit.old!r}")
            path.write_text(text.replace(edit.old, edit.new))
        self._build({edit.file for edit in edits})

    def revert(self, edits: tuple[Edit, ...]) -> None:
        """Take the edits back."""
        for edit in edits:
            shutil.copy(ROOT / edit.file, self.folder / edit.file)
        self._build({edit.file for edit in edits})

    def is_red(self, watcher: Test | Check) -> bool:
        """Whether a test fails here, or a run here fails a check.

        Raises:
            RuntimeError: Neither: it could not be carried out.
        """
        return (
            self._test_is_red(watcher) if isinstance(watcher, Test) else self._check_is_red(watcher)
        )

    def _test_is_red(self, test: Test) -> bool:
        done = self._run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "", test.node)
        if done.returncode not in (0, 1):
            raise RuntimeError(
                f"{test.node}: pytest ended with {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.returncode == 1

    def _check_is_red(self, check: Check) -> bool:
        done = self._run("-m", "loadgen", "run", "--json", *check.flags.split())
        if not done.stdout:
            raise RuntimeError(f"no result of {check.flags}\n{done.stderr}")
        found = {
            each["name"]: each["ok"] for each in orjson.loads(done.stdout)["loadgen"]["checks"]
        }
        return found[check.name] is False

    def _build(self, files: set[str]) -> None:
        if any(file.endswith((".pyx", ".pxd", ".pxi")) for file in files):
            # Only what is older than its source, or than what that includes.
            command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
            subprocess.run(command, cwd=self.folder, check=True, capture_output=True)

    def _run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        # The copy goes before what is installed, in this process and, by way of the environment, in
        # its children.
        environment = os.environ | {
            "PYTHONPATH": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=MAX_S,
            check=False,
        )
