"""Classes: LoRA adapters and priorities of requests, as a real server serves them."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.engines.features.measured_run import MeasuredRun, Row, TriedServer

ADAPTERS = ("sql", "chat")
LORA_REQUESTS = 16
PRIORITY_REQUESTS = 60  # all at once: the server runs 16, and the others wait


def rows(server: TriedServer) -> Iterator[Row]:
    """Run two classes by adapter, and two by priority."""
    flags = ["--backend", "openai-chat", "--random-input-len", "50"]
    classes = [f"{name}:model={name}" for name in ADAPTERS]
    load = [
        "--num-prompts",
        str(LORA_REQUESTS),
        "--max-concurrency",
        "4",
        "--random-output-len",
        "8",
    ]
    run = server.measure(*flags, *load, "--class", classes[0], "--class", classes[1])
    seen = ", ".join(f"{one['ok']} answers of {one['name']}" for one in run.own["classes"])
    yield Row(
        " ".join(f"--class {one}" for one in classes),
        str(LORA_REQUESTS),
        seen,
        (*result_problems(run), *adapter_problems(run)),
    )
    classes = ["urgent:share=25%,priority=0", "batch:share=75%,priority=10"]
    load = ["--num-prompts", str(PRIORITY_REQUESTS), "--random-output-len", "40"]
    run = server.measure(*flags, *load, "--class", classes[0], "--class", classes[1])
    ttft = {one["name"]: one["latency_ms"]["ttft_due"] for one in run.own["classes"]}
    seen = "; ".join(
        f"TTFT of {name}: p50 {of['p50']:.0f}, p90 {of['p90']:.0f} ms" for name, of in ttft.items()
    )
    problems = [*result_problems(run)]
    if ttft["urgent"]["p90"] >= ttft["batch"]["p50"]:
        problems.append("urgent requests were not served earlier")
    yield Row(
        " ".join(f"--class {one}" for one in classes), str(PRIORITY_REQUESTS), seen, tuple(problems)
    )


def result_problems(run: MeasuredRun) -> Iterator[str]:
    """Where the result says anything else of the classes than the records."""
    for one in run.own["classes"]:
        count = sum(record["class"] == one["name"] for record in run.records)
        if not 0 < one["ok"] == count == one["latency_ms"]["ttft_due"]["count"]:
            yield f"{one['ok']} answers of {one['name']}, and {count} records"


def adapter_problems(run: MeasuredRun) -> Iterator[str]:
    """Where an answer is not by the adapter that was asked."""
    answers: dict[str, set[str]] = {name: set() for name in ADAPTERS}
    for index, record in enumerate(run.records):
        events = run.events(index)
        if {event["model"] for event in events} != {record["class"]}:
            yield (
                f"request {index} asked {record['class']}, and was answered by {events[0]['model']}"
            )
        answers[record["class"]].add("".join(map(_text, events)))
    if set.intersection(*answers.values()):
        yield "both adapters give the same answer, as if neither was used"


def _text(event: Mapping[str, Any]) -> str:
    deltas = [choice["delta"] for choice in event["choices"]]
    return "".join(
        (delta.get("reasoning") or "") + (delta.get("content") or "") for delta in deltas
    )
