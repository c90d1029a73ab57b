"""The table of docs/engines.md: how each engine says each knob; `python -m tests.engines.knob_table` writes it."""

from loadgen.engines.kinds import llamacpp, mindie, sglang, simulator, transformers_serve, trtllm, vllm
from loadgen.engines.kinds.knob_table import KnobTable
from loadgen.engines.kinds.knobs import KNOBS
from tests.helpers.documents import between, table
from tests.helpers.source import ROOT

DOCUMENT = ROOT / "docs/engines.md"
BEGIN, END = "<!-- knobs: written by python -m tests.engines.knob_table -->", "<!-- end of knobs -->"
TABLES = [module.TABLE for module in (vllm, sglang, trtllm, mindie, llamacpp, transformers_serve, simulator)]


def cell(said: KnobTable, name: str) -> str:
    if name in said.nearest:
        return f"no: {said.nearest[name]}"
    labels = [form.label_with_versions + (f" ({form.note})" if form.note else "") for form in said.forms.get(name, ())]
    return "; ".join(labels) or "-"


def knob_table() -> str:
    head = ["knob", *(each.engine for each in TABLES)]
    return table(head, ([f"`{name}`", *(cell(each, name) for each in TABLES)] for name in KNOBS))


def meanings() -> str:
    return "\n".join(f"- `{knob.name}` ({knob.kind.__name__}): {knob.help}" for knob in KNOBS.values())


def written() -> str:
    return f"{meanings()}\n\n{knob_table()}"


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
