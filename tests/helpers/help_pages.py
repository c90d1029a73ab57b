"""The help pages of the commands of `loadgen`, without long usage lines and without the topics of
settings.

docs/flags.md lists the settings; usage lines repeat all flags. `python -m tests.helpers.help_pages`
writes them.
"""

import contextlib
import io
import os
import re
from unittest import mock

from loadgen.cli import command_list
from loadgen.cli.main import dispatch
from loadgen.config.option import GROUPS
from tests.helpers.source import ROOT

FOLDER = ROOT / "tests" / "cli" / "golden"
NAMES = (
    "run",
    "search",
    "dataset",
    "translate",
    "doctor",
    "report",
    "compare",
    "audit",
    "import",
    "benchmark-runner",
    *("completion", "help", "version"),
)
COMMANDS = {
    "loadgen": ["--help"],
    **{name: [name, "--help"] for name in NAMES},
    "dataset-fetch": ["dataset", "fetch", "--help"],
    "dataset-cache": ["dataset", "cache", "--help"],
    "run-all": ["run", "--help-all"],
    "run-topics": ["help", "run"],
    "search-all": ["search", "--help-all"],
    "search-load": ["help", "search", "load"],
    "dataset-all": ["dataset", "--help-all"],
    "exit-codes": ["help", "exit-codes"],
}
SETTINGS = tuple(f"{group}:\n" for group in GROUPS)


def shown(words: list[str]) -> str:
    """What a command prints, 80 columns wide."""
    out = io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        mock.patch.dict(os.environ, COLUMNS="80"),
        contextlib.suppress(SystemExit),
    ):
        dispatch(words)
    return out.getvalue()


def page(name: str) -> str:
    """The help of a command."""
    text = shown(COMMANDS[name])
    if (
        name == "loadgen"
    ):  # commands of packages, loadgen's engines among them, have texts of their own
        lines = [
            line
            for line in text.splitlines()
            if not line.startswith(tuple(f"  {one} " for one in command_list.added()))
        ]
        return "\n".join(lines) + "\n"
    kept = [
        part
        for part in re.split(r"\n\n(?=\S)", text)
        if not part.startswith(("usage: loadgen ", *SETTINGS))
    ]
    return "\n\n".join(kept or [text]).rstrip() + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in COMMANDS:
        (FOLDER / f"help-{name}.txt").write_text(page(name))
