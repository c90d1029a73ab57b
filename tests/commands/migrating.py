"""docs/migrating.md: its tables are made of what the parser knows; `python -m tests.commands.migrating` writes them."""

import json
from collections.abc import Iterable, Iterator, Mapping

from loadgen.cli import compat
from loadgen.cli.compat import vllm
from loadgen.cli.compat.others import AIPERF, GUIDELLM
from loadgen.cli.flags import run_parser
from tests.documents import between
from tests.source import ROOT

DOCUMENT = ROOT / "docs/migrating.md"
DATA = ROOT / "tests/data/flags"
BEGIN, END = "<!-- {}: made of the parser -->", "<!-- end of {} -->"


def releases(tool: str) -> dict[str, dict[str, dict[str, str]]]:
    """The flags of each release of a tool that was looked at."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads((DATA / f"{tool}.json").read_text())["flags"]
    return found


def meanings(tool: str, name: str | None) -> Iterator[tuple[str, str, str]]:
    """Every flag of a tool: its name, the releases that have it, and what becomes of it."""
    own, notes = {flag.name: flag for flag in compat.of(name).flags}, vllm.NOTES if tool == "vllm" else {}
    told = releases(tool)
    known = run_parser(name)._option_string_actions
    for flag in sorted(set().union(*told.values())):
        having = [version for version, flags in told.items() if flag in flags]
        since = "" if len(having) == len(told) else ", ".join(having)
        if flag not in own:
            assert flag in known, f"{flag} of {tool} is neither had nor refused"
            yield flag, since, f"the same{'; ' + notes[flag] if flag in notes else ''}"
        elif own[flag].into is None:
            yield flag, since, f"**refused**: {own[flag].says}; {own[flag].use}"
        else:
            yield flag, since, own[flag].says


def tables() -> dict[str, str]:
    """The tables by name, in Markdown."""
    return {
        "vllm": _table(("flag", "only in", "here"), meanings("vllm", None)),
        "sglang": _table(("flag", "here"), ((flag, here) for flag, _, here in meanings("sglang", "sglang"))),
        "guidellm": _words("guidellm", GUIDELLM),
        "aiperf": _words("aiperf", AIPERF),
    }


def _words(tool: str, words: Mapping[str, str]) -> str:
    (told,) = releases(tool).values()
    assert words.keys() <= told.keys()
    return _table(("flag", "here"), words.items())


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    for name, text in tables().items():
        between(DOCUMENT, BEGIN.format(name), text, END.format(name))
