"""A default install: what `pip install .` brings, and nothing else, in a process that sees no other
package.

`python -c LOADGEN_ALONE ...` is `loadgen ...` there. Processes that it starts see all packages
again.
"""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers.command_line import environment

LOADGEN_ALONE = """
import sys
from importlib.machinery import PathFinder

hidden = set(sys.argv.pop(1).split(","))

class Alone(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Alone
from loadgen.cli.main import main
main()
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


def modules_of_others() -> set[str]:
    """The top-level modules that are installed here and would not be by default."""
    ours = installed_by_default()
    tops = metadata.packages_distributions().items()
    return {
        top for top, owners in tops if not ours & {canonicalize_name(owner) for owner in owners}
    }


def loadgen(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run `loadgen ARGUMENTS` as it is in a default install."""
    return subprocess.run(
        [sys.executable, "-c", LOADGEN_ALONE, ",".join(sorted(modules_of_others())), *arguments],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
