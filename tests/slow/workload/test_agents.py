"""Sessions of agents in real time: every wait is kept by the server's clock, and sends are
punctual.
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import loadgen
from loadgen.metrics.records.file import RecordFile
from loadgen.testing.process import Process
from loadgen.testing.truth import Truth

MS = 1_000_000


class Graphs:
    """Sessions of up to 12 calls, each of which waits for up to 4 others."""

    def __init__(self) -> None:
        drawn, self.made = random.Random(11), list[loadgen.Prompt]()
        while len(self.made) < 600:
            for place in range(drawn.randint(1, 12)):
                after = tuple(
                    sorted(
                        drawn.sample(
                            range(1, place + 1), drawn.randint(1, min(place, 4)) if place else 0
                        )
                    )
                )
                number, think_ns = len(self.made), drawn.randint(0, 30) * MS
                text = f"Call {number}."
                self.made.append(
                    loadgen.Prompt(
                        text, 3, drawn.randint(2, 12), text, after=after, think_ns=think_ns
                    )
                )

    def prompts(self, count: int) -> Iterator[loadgen.Prompt]:
        return iter(self.made[:count])

    def provenance(self) -> dict[str, Any]:
        return {"name": "graphs"}


def carry_out(graphs: Graphs, url: str, records: Path) -> dict[str, Any]:
    """Send all graphs, check every wait by the records and the server's clock, and return the
    check of requests sent late.
    """
    Truth.forget(url)
    settings = loadgen.RunSettings(
        base_url=url,
        preflight=False,
        backend="openai-chat",
        request_rate=8,
        num_prompts=600,
        records=str(records),
        extra_body={"metronome": {"first_ms": 3.0, "gap_ms": 2.0}},
    )
    result = loadgen.run_sync(settings, dataset=graphs)
    assert result.data["loadgen"]["outcomes"] == {"ok": 600}
    told, truth = {record.index: record for record in RecordFile(records)}, Truth.fetch(url)
    numbers = truth.number.tolist()
    arrived = dict(zip(numbers, truth.arrival_ns.tolist(), strict=True))
    ended = dict(zip(numbers, truth.write_ns[truth.starts[1:] - 1].tolist(), strict=True))
    edges = 0
    for number, prompt in enumerate(graphs.made[:600]):
        if before := [number - back for back in prompt.after]:
            edges += len(before)
            assert told[number].due == max(told[one].closed for one in before) + prompt.think_ns
            assert told[number].sent >= told[number].due
            assert arrived[number] > max(ended[one] for one in before) + prompt.think_ns
    assert edges > 800
    checks = {check["name"]: check for check in result.data["loadgen"]["checks"]}
    late: dict[str, Any] = checks["requests sent late"]
    return late


def test_calls_reach_the_server_once_all_that_they_wait_for_have_ended_and_not_late(
    metronome: Process, tmp_path: Path
) -> None:
    found = list[str]()
    for attempt in range(3):  # a machine that is busy with something else delays any send
        late = carry_out(Graphs(), metronome.url, tmp_path / f"{attempt}.jsonl")
        found.append(late["value"])
        if late["ok"]:
            return
    raise AssertionError(found)
