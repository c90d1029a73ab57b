"""The flags of other tools in docs/other-flags.md, made of what the parser knows.

`python -m tests.integration.commands.migrating` writes them.
"""

import json
from collections.abc import Iterable, Iterator
from functools import cache
from textwrap import fill

from loadgen.cli import compat
from loadgen.cli.flags import run_parser
from loadgen.cli.translate import TOOLS
from loadgen.cli.translate.flag_table import Flag
from tests.helpers.documents import between
from tests.helpers.source import ROOT
from tests.integration.commands import flag_meanings

DOCUMENT = ROOT / "docs/other-flags.md"
DATA = ROOT / "tests/data/flags"
# Remarks on flags of the same name that do less or more here.
VLLM_NOTES = {
    "--backend": "openai-chat; openai-responses; openai, also as vllm, lmdeploy, scalellm, sglang, "
    "llama.cpp; openai-embeddings, openai-embeddings-chat, infinity-embeddings, vllm-pooling, "
    "vllm-rerank; others are refused",
    "--base-url": "repeat it for several servers",
    "--burstiness": "also inf: evenly spaced",
    "--custom-ensure-client-side-data": "files are sent as they are, and images on the network "
    "are refused",
    "--custom-output-len": "the default for rows without a length; in vLLM a row's own length "
    "counts only with -1",
    "--dataset-name": "those of vLLM in docs/datasets.md, and loadgen's own; others are refused",
    "--goodput": "failed and unfinished requests count as not good",
    "--header": "@FILE keeps a secret off the command line",
    "--hf-name": "also found from the last two folders of --dataset-path",
    "--ignore-eos": "the default for random prompts, as in vLLM 0.32; `--no-ignore-eos` switches "
    "it off",
    "--lora-assignment": "also skewed:ALPHA",
    "--lora-modules": "each a class of the result; also for warm-ups, which vLLM sends to the "
    "model itself",
    "--num-prompts": "1000, unless --duration is given; -1: all prompts of a file",
    "--num-warmups": "warm-ups use other prompts than the run; with `--compat` its first one, as "
    "in vLLM",
    "--percentile-metrics": "client_queue_time is the wait for a slot, which a request of a run at "
    "--rate inf does not have: it is due when a slot is free",
    "--probe-request-rate": "of several servers the first is probed",
    "--profile": "a server that refuses to start its profiler ends the run; in vLLM the run goes "
    "on without",
    "--random-input-len": "also distributions",
    "--random-range-ratio": "prompts have exactly the drawn lengths",
    "--sonnet-input-len": "from loadgen's own text",
    "--temperature": "the server's default, as in vLLM 0.32; 0 with `--compat vllm-0.11`",
    "--ready-check-timeout-sec": "0, as in vLLM 0.32; 600 with `--compat vllm-0.11`; also the time "
    "to wait for a server that does not listen yet",
    "--tokenizer": "a tokenizer.json, its folder, a .gguf or a hub name",
    "--request-rate": "also `--rate`; several values, as 1,2,4, make one run each",
    "--max-concurrency": "several values, as 1,2,4, make one run each",
}
SGLANG_NOTES = {
    "--dataset-path": "not read for random prompts: loadgen uses its own words, with the "
    "requested lengths",
    "--temperature": "sent with every API; SGLang's tool sends it with its own API, and 0 with "
    "others",
    "--top-p": "sent with every API; SGLang's tool sends it with its own API alone",
    "--profile": "a server that refuses to start its profiler ends the run; in SGLang the run "
    "goes on without",
}
INFERENCEX_NOTES = {name: note for name, note in VLLM_NOTES.items() if name != "--ignore-eos"} | {
    "--dataset-name": f"{VLLM_NOTES['--dataset-name']}; sharegpt if it is not given"
}
NOTES = {
    "vllm": VLLM_NOTES,
    "vllm-rs": VLLM_NOTES,
    "sglang": SGLANG_NOTES,
    "inferencex": INFERENCEX_NOTES,
}
# What flags mean that are no settings of loadgen, by the name of --compat.
MEANINGS = {
    None: flag_meanings.VLLM,
    "sglang": flag_meanings.SGLANG,
    "inferencex": flag_meanings.INFERENCEX,
}
BEGIN, END = "<!-- {}: made by tests.integration.commands.migrating -->", "<!-- end of {} -->"
SAME, NO_EFFECT = "the same", "no effect: "
NEW = "+"  # behind a flag that the oldest of several releases does not have
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
            yield flag, MEANINGS[name][flag]
        elif own[flag].command:
            yield flag, f"`loadgen {own[flag].command}`: {own[flag].reason}"


def refused(name: str | None, having: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each flag of a tool that is refused, with the reason and the remedy."""
    for flag in sorted(compat.tool_of(name).flags, key=lambda flag: flag.name):
        if flag.convert is None and not flag.command and flag.name in having:
            yield flag.name, f"{flag.reason}; {flag.remedy}"


@cache
def texts() -> dict[str, str]:
    """Return the generated parts of the page by name, in Markdown."""
    return {
        "vllm": _by_effect("vLLM", None),
        "vllm-rs": _by_effect("vllm-rs", None),
        "sglang": _by_effect("SGLang", "sglang"),
        "inferencex": _by_effect("InferenceX", "inferencex"),
    }


def meanings(tool: str) -> list[tuple[str, Flag]]:
    """Return each flag of a tool whose command lines are translated, with its row in the table: the
    recorded ones, or, of a tool without such a list, those of the table.
    """
    table = TOOLS[tool]
    if not (DATA / f"{tool}.json").exists():
        return [(name, flag) for flag in table.flags for name in flag.names]
    recorded = sorted({flag for flags in releases(tool).values() for flag in flags})
    return [(name, flag) for name in recorded if (flag := table.flag(name)) is not None]


def _by_effect(title: str, name: str | None) -> str:
    """Write a section for each kind of effect that a flag of a tool has here."""
    tool = title.lower()
    rows = dict(accepted(tool, name))
    if tool != "vllm":
        of_vllm = dict(accepted("vllm", None))
        rows = {flag: here for flag, here in rows.items() if here != of_vllm.get(flag)}
    same = [flag for flag, here in rows.items() if here == SAME]
    remarks = {
        flag: here.removeprefix(f"{SAME}; ")
        for flag, here in rows.items()
        if here.startswith(f"{SAME}; ")
    }
    without = {
        flag: here.removeprefix(NO_EFFECT)
        for flag, here in rows.items()
        if here.startswith("no effect")
    }
    others = [
        (flag, here) for flag, here in rows.items() if not here.startswith((SAME, "no effect"))
    ]
    told = refused(name, set().union(*releases(tool).values()))
    sections = {
        "that are the same": _wrapped(", ".join(_named(tool, flag) for flag in same)),
        "that are the same, with remarks": _grouped(tool, remarks.items()),
        "that have another name or other values": _grouped(tool, others),
        "without effect": _grouped(tool, without.items()),
        "that are refused": _wrapped(", ".join(_named(tool, flag) for flag, _ in told)),
    }
    return "\n\n".join(
        f"### Flags of {title} {which}\n\n{text}" for which, text in sections.items() if text
    )


def _grouped(tool: str, rows: Iterable[tuple[str, str]]) -> str:
    """Write a list of meanings; flags with the same meaning share an item."""
    flags: dict[str, list[str]] = {}
    for flag, here in rows:
        flags.setdefault(here, []).append(_named(tool, flag))
    return "\n".join(
        _wrapped(f"- {', '.join(names)}: {here}", "  ") for here, names in flags.items()
    )


def _wrapped(text: str, indent: str = "") -> str:
    return fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _named(tool: str, flag: str) -> str:
    """Name a flag, with the releases that have it where others do not."""
    if not (DATA / f"{tool}.json").exists():
        return f"`{flag.removeprefix('--')}`"
    told = releases(tool)
    having = [version for version, flags in told.items() if flag in flags]
    assert having, f"{tool} has no {flag}"
    if len(told) > 2 and having == list(told)[1:]:
        return f"`{flag}`{NEW}"
    return f"`{flag}`" + ("" if len(having) == len(told) else f" ({', '.join(having)})")


if __name__ == "__main__":
    for name, text in texts().items():
        between(DOCUMENT, BEGIN.format(name), text, END.format(name))
