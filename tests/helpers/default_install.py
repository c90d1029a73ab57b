"""A default install: what `pip install .` brings, and nothing else, in a process that sees no other
package. Processes that it starts see all packages again.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.command_line import environment

# `python -c SEVERAL_ALONE HIDDEN COMMANDS` prints the exit code of each command and its errors.
SEVERAL_ALONE = """
import contextlib, io, json, sys
from importlib.machinery import PathFinder

hidden = set(sys.argv[1].split(","))

class Alone(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Alone
from loadgen.cli.main import dispatch

ended = []
for words in json.loads(sys.argv[2]):
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            code = dispatch(words)
        except SystemExit as end:
            code = end.code
    ended.append((code, errors.getvalue()))
print(json.dumps(ended))
"""  # noqa: E501


def installed_by_default(name: str = "loadgen", found: set[str] | None = None) -> set[str]:
    """The distributions that a package brings with it when no extra is named."""
    found = set() if found is None else found
    if canonicalize_name(name) not in found:
        found.add(canonicalize_name(name))
        for text in metadata.requires(name) or []:
            wanted = Requirement(text)
            if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                installed_by_default(wanted.name, found)
    return found


@cache
def modules_of_others() -> set[str]:
    """The top-level modules that are installed here and would not be by default."""
    ours = installed_by_default()
    tops = metadata.packages_distributions().items()
    return {
        top for top, owners in tops if not ours & {canonicalize_name(owner) for owner in owners}
    }


def several(commands: Sequence[Sequence[str]], cwd: Path) -> list[tuple[int, str]]:
    """Run `loadgen` with each of several lists of arguments, one after the other in one process, as
    it is in a default install.

    Args:
        commands: The arguments of each.
        cwd: The folder in which they run.

    Returns:
        The exit code of each, and what it printed on stderr.
    """
    hidden = ",".join(sorted(modules_of_others()))
    done = subprocess.run(
        [sys.executable, "-c", SEVERAL_ALONE, hidden, json.dumps(commands)],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, errors) for code, errors in json.loads(done.stdout.splitlines()[-1])]
