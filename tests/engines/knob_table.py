"""The knobs in docs/engine-knobs.md: how each engine takes each knob; `python -m
tests.engines.knob_table` writes it.
"""

from loadgen.engines.kinds import (
    llamacpp,
    mindie,
    sglang,
    simulator,
    transformers_serve,
    trtllm,
    vllm,
)
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import KINDS, KNOBS
from tests.helpers.documents import between, list_item
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/engine-knobs.md"
BEGIN, END = (
    "<!-- knobs: written by python -m tests.engines.knob_table -->",
    "<!-- end of knobs -->",
)
TABLES = [
    module.TABLE
    for module in (vllm, sglang, trtllm, mindie, llamacpp, transformers_serve, simulator)
]


def taken(said: KnobTable, name: str) -> str:
    """How an engine takes a knob, in Markdown."""
    if name in said.nearest:
        return f"no. Instead, {said.nearest[name]}"
    labels = [
        form.label_with_versions + (f" ({form.note})" if form.note else "")
        for form in said.forms.get(name, ())
    ]
    return "; ".join(labels) or "no"


def section(name: str) -> str:
    """The section of a knob: its meaning, and an item for the engines that take it alike."""
    knob = KNOBS[name]
    alike: dict[str, list[str]] = {}
    for said in TABLES:
        alike.setdefault(taken(said, name), []).append(said.engine)
    items = [
        list_item(f"{', '.join(engines)}: {how}")
        for how, engines in sorted(alike.items(), key=_no_last)
    ]
    value = f"one of {', '.join(knob.choices)}" if knob.choices else KINDS[knob.kind]
    meaning = f"{knob.help[0].upper()}{knob.help[1:]} ({value})."
    return f"### `{name}`\n\n{meaning}\n\n" + "\n".join(items)


def _no_last(item: tuple[str, list[str]]) -> bool:
    return item[0] == "no"


def written() -> str:
    return "\n\n".join(map(section, KNOBS))


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
