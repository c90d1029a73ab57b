"""The tables of docs/migrating.md, made of what the parser knows.

`python -m tests.integration.commands.migrating` writes them.
"""

import json
from collections.abc import Iterable, Iterator

from loadgen.cli import compat
from loadgen.cli.compat import sglang, vllm
from loadgen.cli.compat.other_tools import AIPERF, GUIDELLM
from loadgen.cli.flags import run_parser
from tests.helpers.documents import between
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/migrating.md"
DATA = ROOT / "tests/data/flags"
NOTES = {"vllm": vllm.NOTES, "sglang": sglang.NOTES}
BEGIN, END = "<!-- {}: made by tests.integration.commands.migrating -->", "<!-- end of {} -->"


def releases(tool: str) -> dict[str, list[str]]:
    """The flags of each release of a tool that was looked at."""
    found: dict[str, list[str]] = json.loads((DATA / f"{tool}.json").read_text())["flags"]
    return found


def meanings(tool: str, name: str | None) -> Iterator[tuple[str, str]]:
    """Every flag of a tool, and its meaning here."""
    own, notes = {flag.name: flag for flag in compat.tool_of(name).flags}, NOTES[tool]
    known = run_parser(name)._option_string_actions
    for flag in sorted(set().union(*releases(tool).values())):
        if flag not in own:
            assert flag in known, f"{flag} of {tool} is neither supported nor refused"
            yield flag, f"the same{'; ' + notes[flag] if flag in notes else ''}"
        elif own[flag].convert is None:
            yield flag, f"**refused**: {own[flag].meaning}; {own[flag].remedy}"
        else:
            yield flag, own[flag].meaning


def tables() -> dict[str, str]:
    """The tables by name, in Markdown."""
    return {
        "vllm": _table("vllm", meanings("vllm", None)),
        "sglang": _table("sglang", meanings("sglang", "sglang")),
        "guidellm": _table("guidellm", GUIDELLM.items()),
        "aiperf": _table("aiperf", AIPERF.items()),
    }


def _table(tool: str, rows: Iterable[tuple[str, str]]) -> str:
    """What flags of a tool are here; of several releases also which of them have it, where not all do."""
    told = releases(tool)
    lines = [(f"flag of {', '.join(told)}", "only in", "here"), ("---", "---", "---")]
    for flag, here in rows:
        having = [version for version, flags in told.items() if flag in flags]
        assert having, f"{tool} has no {flag}"
        lines.append((f"`{flag}`", "" if len(having) == len(told) else ", ".join(having), here))
    cells = lines if len(told) > 1 else [(flag, here) for flag, _, here in lines]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in cells)


if __name__ == "__main__":
    for name, text in tables().items():
        between(DOCUMENT, BEGIN.format(name), text, END.format(name))
