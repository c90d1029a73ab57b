"""The help pages of the commands of `loadgen`, without usage lines and without the groups of settings.

docs/flags.md lists the settings; usage lines repeat all flags. `python -m tests.helpers.help_pages` writes
them.
"""

import contextlib
import io
import os
import re
from unittest import mock

from loadgen.cli.main import _plugin_commands, dispatch
from loadgen.config.option import GROUPS
from tests.helpers.source import ROOT

FOLDER = ROOT / "tests" / "cli" / "golden"
COMMANDS = {
    "loadgen": [],
    **{name: [name] for name in ("run", "search", "dataset", "doctor", "report", "compare", "audit", "import")},
    "dataset-fetch": ["dataset", "fetch"],
    "dataset-cache": ["dataset", "cache"],
    "benchmark-runner": ["benchmark-runner"],
}
SETTINGS = tuple(f"{group}:\n" for group in GROUPS)


def page(name: str) -> str:
    """The help of a command, 100 columns wide."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), mock.patch.dict(os.environ, COLUMNS="100"), contextlib.suppress(SystemExit):
        dispatch([*COMMANDS[name], "--help"])
    if name == "loadgen":  # commands of packages, loadgen's engines among them, have texts of their own
        lines = [
            line
            for line in out.getvalue().splitlines()
            if not line.startswith(tuple(f"  {one} " for one in _plugin_commands()))
        ]
        return "\n".join(lines) + "\n"
    kept = [
        part for part in re.split(r"\n\n(?=\S)", out.getvalue()) if not part.startswith(("usage: loadgen ", *SETTINGS))
    ]
    return "\n\n".join(kept).rstrip() + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in COMMANDS:
        (FOLDER / f"help-{name}.txt").write_text(page(name))
