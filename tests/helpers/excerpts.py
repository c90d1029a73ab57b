"""Pages written from the facts of published ones, and how much of what a reader finds in them the
audit finds; `python -m tests.helpers.excerpts`.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from loadgen.errors import BadInput
from loadgen.lab.audit import Finding, audit, grouped
from tests.helpers.source import ROOT

DATA = ROOT / "tests" / "data" / "excerpts"
EXCERPTS = json.loads((DATA / "excerpts.json").read_text())
FROZEN = json.loads((DATA / "frozen.json").read_text())
SERVE = {
    "SGLang": "python3 -m sglang.launch_server --model-path",
    "vLLM": "vllm serve",
    "TensorRT-LLM": "trtllm-serve",
}
BENCH = {"sglang": "python3 -m sglang.bench_serving", "vllm": "vllm bench serve"}


def written(name: str) -> tuple[str, dict[str, range]]:
    """The page of an excerpt, and the lines of each of its parts, by what the corpus calls it."""
    lines: list[str] = []
    places: dict[str, range] = {}
    counts: dict[str, int] = {}
    for part in EXCERPTS[name]["page"]:
        ((kind, facts),) = part.items()
        counts[kind] = counts.get(kind, 0) + 1
        begin = len(lines) + 1
        lines += [*_lines(kind, facts), ""]
        places[f"{kind} {counts[kind]}"] = range(begin, len(lines) + 1)
    return "\n".join(lines), places


def _lines(kind: str, facts: Any) -> list[str]:
    if kind == "section":
        return [f"{'#' * facts[0]} {facts[1]}"]
    if kind == "table":
        header, *rows = (f"| {' | '.join(row)} |" for row in facts)
        return [header, "|" + "---|" * len(facts[0]), *rows]
    if kind == "result":
        rows = [f"{label}: {value}" for label, value in facts.items()]
        return ["```", "============ Serving Benchmark Result ============", *rows, "=" * 50, "```"]
    program = SERVE[facts["engine"]] if kind == "server" else BENCH[facts["tool"]]
    words = [facts["model"]] if kind == "server" else []
    skipped = ("engine", "model") if kind == "server" else ("tool",)
    words += [f"--{flag} {value}" for flag, value in facts.items() if flag not in skipped]
    return ["```bash", " ".join([program, *words]), "```"]


def found(name: str) -> tuple[list[tuple[str, str, bool]], list[str]]:
    """What the audit finds in an excerpt: part, rule and whether it is a note; and what it misses.

    A finding of one cause counts once, and is right if one of its places is listed.
    """
    text, places = written(name)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "page.md"
        path.write_text(text)
        try:
            groups = grouped(audit(str(path)))
        except BadInput:  # nothing in it can be checked
            groups = []
    true = [(part, rule) for part, rule, _ in EXCERPTS[name]["true"]]

    def parts(finding: Finding) -> str:
        return next((part for part, at in places.items() if finding.place.line in at), "")

    raised = []
    for group in groups:
        at = [(parts(finding), finding.rule) for finding in group.findings]
        part, rule = next((each for each in at if each in true), at[0])
        raised.append((part, rule, group.note))
    everywhere = {(parts(f), f.rule) for group in groups for f in group.findings}
    missed = [f"{part} {rule}" for part, rule in true if (part, rule) not in everywhere]
    return raised, missed


if __name__ == "__main__":
    for page, expected in EXCERPTS.items():
        right = {(part, rule) for part, rule, _ in expected["true"]}
        raised, missed = found(page)
        for part, rule, note in raised:
            if (part, rule) not in right:
                print(f"{page}: {part}: {rule}: {'note' if note else 'inconsistent'}, not listed")
        for gap in missed:
            print(f"{page}: {gap}: missed")
