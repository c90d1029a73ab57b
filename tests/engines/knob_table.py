"""The table of docs/engines.md: how each engine says each knob; `python -m tests.engines.knob_table` writes it."""

from loadgen.engines import llamacpp, mindie, sglang, transformers, trtllm, vllm
from loadgen.engines.knobs import KNOBS
from loadgen.engines.sim import command as sim
from loadgen.engines.table import Table
from tests.documents import between
from tests.source import ROOT

DOCUMENT = ROOT / "docs/engines.md"
BEGIN, END = "<!-- knobs: written by python -m tests.engines.knob_table -->", "<!-- end of knobs -->"
TABLES = [module.TABLE for module in (vllm, sglang, trtllm, mindie, llamacpp, transformers, sim)]


def cell(table: Table, name: str) -> str:
    if name in table.nearest:
        return f"no: {table.nearest[name]}"
    ways = [way.reach + (f" ({way.note})" if way.note else "") for way in table.ways.get(name, ())]
    return "; ".join(ways) or "-"


def knob_table() -> str:
    lines = [["knob", *(table.engine for table in TABLES)], ["---"] * (len(TABLES) + 1)]
    lines += [[f"`{name}`", *(cell(table, name) for table in TABLES)] for name in KNOBS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def meanings() -> str:
    return "\n".join(f"- `{knob.name}` ({knob.kind.__name__}): {knob.help}" for knob in KNOBS.values())


def written() -> str:
    return f"{meanings()}\n\n{knob_table()}"


if __name__ == "__main__":
    between(DOCUMENT, BEGIN, written(), END)
