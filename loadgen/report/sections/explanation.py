"""Explanation: where the time of the requests went, and what caused it."""

from collections.abc import Iterator, Mapping

from loadgen.document import Block, Items, Line, Paragraph, Table, line
from loadgen.report.result.explanation import Explanation, NamedCause, PredictedChange
from loadgen.util.number_format import in_table, latency, percent, plural

TITLE = "Why: where the time went"
# How the parts of the time to the first token are called.
PARTS = {
    "cap": "cap",
    "retries": "retries",
    "connect": "connect",
    "client": "loadgen",
    "outside": "outside",
    "path_stall": "way stalled",
    "queue": "queue",
    "engine_stall": "engine stalled",
    "prompt": "prompt",
    "read_late": "read late",
}
AFTER = {
    "model": "the model's own speed",
    "streams": "other streams",
    "prompts": "prompts of others",
    "client_stall": "loadgen late",
    "path_stall": "path stalls",
    "stream_stall": "stream stalls",
    "prompt_stall": "long prompts of others",
    "starved_stall": "preempted",
    "engine_stall": "engine pauses",
    "other": "in no part",
}
# What a queue is for, by the cause that says it.
QUEUES = {"queue-slots": "slots", "kv": "KV cache", "queue-prefill": "prompts"}
SAME = "Neither the mean TTFT nor the mean time after it differs by a millisecond."
MOST_PARTS = 2  # that are named of a change
LEAST_MS = 0.05  # that a part must be to be shown
KINDS = {"estimate": "estimated", "server": "by the server", "at most": "at most"}


def answer(explain: Explanation) -> Items:
    """Write the answer, or each named cause with its evidence and what to do below it."""
    if not explain.causes:
        return Items((line(explain.answer),))
    return Items(tuple(_cause_lines(cause) for cause in explain.causes))


def blocks(explain: Explanation) -> Iterator[Block]:
    """Write the answer, the parts of fast and slow requests, and what else was found."""
    yield answer(explain)
    yield _bands(explain)
    yield Items.of(_notes(explain))


def _cause_lines(cause: NamedCause) -> tuple[Line, ...]:
    slowest = " (the slowest requests)" if cause.where == "tail" else ""
    sentence = f"{cause.sentence[0].upper()}{cause.sentence[1:]}{slowest}."
    advice = f"-> {cause.advice}"
    if (predicted := cause.predicted) is not None:
        advice += f". {_prediction_text(predicted)}"
    return line(sentence), line(cause.evidence), line(advice)


def _prediction_text(predicted: PredictedChange) -> str:
    pairs = (
        ("TTFT p50", predicted.ttft_p50),
        ("p99", predicted.ttft_p99),
        ("gap p99", predicted.gap_p99),
        ("mean E2EL", predicted.e2el),
    )
    changes = (f"{name} {latency(pair.now_ms)} -> {latency(pair.then_ms)}" for name, pair in pairs)
    return (
        f"Predicted of {predicted.change}: {', '.join(changes)}; the same replay of this run is "
        f"{percent(predicted.error)} off"
    )


def _shown(explain: Explanation) -> list[str]:
    return [
        name
        for name in PARTS
        if any(abs(band.parts_ms.get(name, 0.0)) >= LEAST_MS for band in explain.bands.values())
    ]


def _bands(explain: Explanation) -> Table:
    shown = _shown(explain)
    rows = [
        (
            name,
            str(band.requests),
            *map(in_table, (band.total_ms, *(band.parts_ms.get(part, 0.0) for part in shown))),
        )
        for name, band in explain.bands.items()
    ]
    return Table.of(
        ("TTFT (ms)", "requests", "sum", *(PARTS[part] for part in shown)), rows, text_columns=1
    )


def _notes(explain: Explanation) -> Iterator[str]:
    known = [
        f"{text}: {', '.join(names)}"
        for kind, text in KINDS.items()
        if (names := [PARTS[part] for part in _shown(explain) if explain.part_kinds[part] == kind])
    ]
    yield f"Times are from due; the parts add up to each request's. {'; '.join(known)}.".strip()
    if parts := [
        f"{AFTER[name]} {latency(ms)}"
        for name, ms in explain.after_first_ms.items()
        if abs(ms) >= LEAST_MS
    ]:
        yield f"After the first token, a request: {', '.join(parts)}."
    yield _steps_text(explain)
    if explain.stalls:
        counts = (
            f"{plural(stall.count, 'gap')} of {latency(stall.median_ms)} ({name})"
            for name, stall in explain.stalls.items()
        )
        yield f"Long gaps, each by its likely cause: {', '.join(counts)}."
    if explain.contradicted:
        yield (
            f"Of {plural(explain.contradicted, 'request')} the server said more time than there "
            "was."
        )
    others = f", {explain.others} others are not in it" if explain.others else ""
    yield (
        f"Of {plural(explain.requests, 'request')}{others}; {percent(explain.unexplained)} of the "
        "time is in no part."
    )


def _steps_text(explain: Explanation) -> str:
    steps = explain.steps
    if steps is None:
        return f"The cost of an engine's step is not known: {explain.no_steps}."
    costs = [f"{in_table(steps.base_ms)} ms (standard error {steps.base_error_ms:.2g})"]
    if steps.prompt_us is not None:
        costs.append(
            f"{steps.prompt_us:.3g} us for each prompt token ({steps.prompt_error_us:.2g})"
        )
    if steps.stream_us is not None:
        costs.append(f"{steps.stream_us:.3g} us for each stream ({steps.stream_error_us:.2g})")
    return (
        f"A step of the engine, from the arrivals of {steps.steps} steps: {' + '.join(costs)}; "
        f"{percent(steps.kept)} of them within {steps.within_ms:.2g} ms."
    )


def difference(before: Explanation, after: Explanation) -> Iterator[Block]:
    """Write what differs between two runs: the parts, and the causes of each."""
    yield Items((line(changed(before, after) or SAME),))
    shown = [name for name in PARTS if name in {*_shown(before), *_shown(after)}]
    rows = []
    for name, band in after.bands.items():
        parts = before.bands[name].parts_ms
        # A result of an earlier version lacks some.
        changes = [band.parts_ms.get(part, 0.0) - parts.get(part, 0.0) for part in shown]
        rows.append((name, *(f"{ms:+.1f}" for ms in (sum(changes), *changes))))
    yield Table.of(
        ("TTFT change (ms)", "sum", *(PARTS[name] for name in shown)),
        rows,
        text_columns=1,
    )
    for title, explain in (("The first run", before), ("The second run", after)):
        said = " ".join(cause.sentence + ";" for cause in explain.causes).rstrip(";")
        yield Paragraph.of(f"{title}: {said or explain.answer}")


def changed(before: Explanation, after: Explanation) -> str:
    """Write by how much the means differ, with the parts that differ most: "mean TTFT +310 ms:
    +300 queue".
    """
    names = part_names(before, after)
    texts = (
        ("mean TTFT", change_text(*(_named(one.mean_ms, names) for one in (before, after)))),
        (
            "after the first token",
            change_text(*(_named(one.after_first_ms, AFTER) for one in (before, after))),
        ),
    )
    return "; ".join(f"{what} {text}" for what, text in texts if text)


def part_names(*explanations: Explanation) -> dict[str, str]:
    """The names of the parts for readers; that of the queue says what it is for, if they agree."""
    causes = {cause.name for one in explanations for cause in one.causes}
    kinds = [kind for name, kind in QUEUES.items() if name in causes]
    return PARTS | {"queue": f"queue ({kinds[0]})"} if len(kinds) == 1 else PARTS


def change_text(before: Mapping[str, float], after: Mapping[str, float]) -> str:
    """Write by how much the sum of some parts differs, and the parts that make most of it:
    "+310 ms: +300 queue"; empty where it does not differ by a millisecond.

    Args:
        before, after: The parts by their names for readers, ms.
    """
    changes = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in {**before, **after}}
    whole = sum(changes.values())
    if abs(whole) < 1:
        return ""
    along = {name: ms for name, ms in changes.items() if ms * whole > 0}
    largest = sorted(along, key=lambda name: -abs(along[name]))[:MOST_PARTS]
    said = [
        f"{along[name]:+.0f} {name}" for name in largest if abs(along[name]) >= 0.1 * abs(whole)
    ]
    return f"{whole:+.0f} ms: {', '.join(said)}" if said else f"{whole:+.0f} ms"


def _named(parts: Mapping[str, float], names: Mapping[str, str]) -> dict[str, float]:
    return {names[name]: ms for name, ms in parts.items()}
