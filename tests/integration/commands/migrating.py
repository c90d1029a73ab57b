"""The flags of other tools in docs/migrating.md, made of what the parser knows.

`python -m tests.integration.commands.migrating` writes them.
"""

import json
from collections.abc import Iterable, Iterator
from textwrap import fill

from loadgen.cli import compat
from loadgen.cli.compat import inferencex, sglang, vllm
from loadgen.cli.compat.other_tools import AIPERF, GUIDELLM
from loadgen.cli.flags import run_parser
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/migrating.md"
DATA = ROOT / "tests/data/flags"
NOTES = {"vllm": vllm.NOTES, "vllm-rs": vllm.NOTES, "sglang": sglang.NOTES, "inferencex": inferencex.NOTES}
OTHERS = {"guidellm": GUIDELLM, "aiperf": AIPERF}
BEGIN, END = "<!-- {}: made by tests.integration.commands.migrating -->", "<!-- end of {} -->"
SAME, NO_EFFECT = "the same", "no effect: "
WIDTH = 120


def releases(tool: str) -> dict[str, list[str]]:
    """Return the flags of each examined release of a tool."""
    found: dict[str, list[str]] = json.loads((DATA / f"{tool}.json").read_text())["flags"]
    return found


def accepted(tool: str, name: str | None) -> Iterator[tuple[str, str]]:
    """Yield each flag of a tool that is accepted, and its meaning here."""
    own, notes = {flag.name: flag for flag in compat.tool_of(name).flags}, NOTES[tool]
    known = run_parser(name)._option_string_actions
    for flag in sorted(set().union(*releases(tool).values())):
        if flag not in own:
            assert flag in known, f"{flag} of {tool} is neither supported nor refused"
            yield flag, f"{SAME}{'; ' + notes[flag] if flag in notes else ''}"
        elif own[flag].convert is not None:
            yield flag, own[flag].meaning
        elif own[flag].command:
            yield flag, f"`loadgen {own[flag].command}`: {own[flag].meaning}"


def refused(name: str | None, having: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag of a tool that is refused, with the reason and the remedy."""
    for flag in sorted(compat.tool_of(name).flags, key=lambda flag: flag.name):
        if flag.convert is None and not flag.command and flag.name in having:
            yield flag.name, f"{flag.meaning}; {flag.remedy}"


def texts() -> dict[str, str]:
    """Return the generated parts of the page by name, in Markdown."""
    return {
        "vllm": _by_effect("vLLM", None),
        "vllm-rs": _by_effect("vllm-rs", None),
        "sglang": _by_effect("SGLang", "sglang"),
        "inferencex": _by_effect("InferenceX", "inferencex"),
        "guidellm": _grouped("guidellm", GUIDELLM.items()),
        "aiperf": table(
            (f"flag of {', '.join(releases('aiperf'))}", "here"), ((f"`{flag}`", here) for flag, here in AIPERF.items())
        ),
    }


def _by_effect(title: str, name: str | None) -> str:
    """Write a section for each kind of effect that a flag of a tool has here."""
    tool = title.lower()
    rows = dict(accepted(tool, name))
    same = [flag for flag, here in rows.items() if here == SAME]
    remarks = {flag: here.removeprefix(f"{SAME}; ") for flag, here in rows.items() if here.startswith(f"{SAME}; ")}
    without = {flag: here.removeprefix(NO_EFFECT) for flag, here in rows.items() if here.startswith("no effect")}
    others = [(flag, here) for flag, here in rows.items() if not here.startswith((SAME, "no effect"))]
    return "\n\n".join(
        (
            f"### Flags of {title} that are the same",
            _wrapped(", ".join(_named(tool, flag) for flag in same)),
            f"### Flags of {title} that are the same, with remarks",
            _grouped(tool, remarks.items()),
            f"### Flags of {title} that have another name or other values",
            _grouped(tool, others),
            f"### Flags of {title} without effect",
            _grouped(tool, without.items()),
            f"### Flags of {title} that are refused",
            _grouped(tool, refused(name, set().union(*releases(tool).values()))),
        )
    )


def _grouped(tool: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write a list of meanings; flags with the same meaning share an item."""
    flags: dict[str, list[str]] = {}
    for flag, here in rows:
        flags.setdefault(here, []).append(_named(tool, flag))
    return "\n".join(_wrapped(f"- {', '.join(names)}: {here}", "  ") for here, names in flags.items())


def _wrapped(text: str, indent: str = "") -> str:
    return fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _named(tool: str, flag: str) -> str:
    """Name a flag, with the releases that have it where others do not."""
    told = releases(tool)
    having = [version for version, flags in told.items() if flag in flags]
    assert having, f"{tool} has no {flag}"
    return f"`{flag}`" + ("" if len(having) == len(told) else f" ({', '.join(having)})")


if __name__ == "__main__":
    for name, text in texts().items():
        between(DOCUMENT, BEGIN.format(name), text, END.format(name))
