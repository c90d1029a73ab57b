"""Measured runs: `loadgen run` against a real server, and the server's own counters before and
after it.
"""

import itertools
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.engines.engines import Real
from loadgen.engines import Server
from loadgen.util.http_client import request
from tests.helpers.captured_responses import Golden, payloads
from tests.helpers.command_line import loadgen

SAMPLE = re.compile(r"^(?P<name>[\w:]+)(?:\{[^}]*\})? (?P<value>\S+)", re.MULTILINE)


class FeatureFailed(Exception):
    """A run that has no result."""


@dataclass(frozen=True)
class Row:
    """What was seen of one feature.

    Attributes:
        asked: The flags.
        requests: How many requests, in words.
        seen: What the server and the result said, in words.
        problems: What must not be.
    """

    asked: str
    requests: str
    seen: str
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Counters:
    """The names of an engine's counters.

    Attributes:
        looked_up: Their sum is the tokens that were looked up in the prefix cache.
        found: Those of them that were there.
        generated: Output tokens.
    """

    looked_up: tuple[str, ...]
    found: str
    generated: str


@dataclass(frozen=True)
class MeasuredRun:
    """A run, and what its server counted meanwhile.

    Attributes:
        result: The result as JSON.
        records: Each line of its records, by index.
        answers: The captured response to each request, by index.
        increases: The increase of each of the server's samples, summed over labels.
    """

    result: dict[str, Any]
    records: list[dict[str, Any]]
    answers: dict[int, Golden]
    increases: Mapping[str, float]

    @property
    def own(self) -> dict[str, Any]:
        """What is loadgen's own in the result."""
        own: dict[str, Any] = self.result["loadgen"]
        return own

    def text(self, index: int) -> str:
        """The content of a streamed answer of a chat, without reasoning."""
        choices = [choice for event in self.events(index) for choice in event["choices"]]
        return "".join(choice["delta"].get("content") or "" for choice in choices)

    def events(self, index: int) -> list[dict[str, Any]]:
        """Every event of a streamed answer, as a JSON parser reads it."""
        return [json.loads(payload) for payload in payloads(self.answers[index])]


@dataclass(frozen=True)
class TriedServer:
    """A server that is tried.

    Attributes:
        real: The engine.
        server: The running server.
        counters: The names of its counters.
        folder: Where the files of the runs are left.
        words: Of a question in a session: one that is longer than a block of the cache.
        output_tokens: Of an answer whose user may leave: more than are generated in a second.
        numbers: Of its runs.
    """

    real: Real
    server: Server
    counters: Counters
    folder: Path
    words: int
    output_tokens: int
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def measure(self, *flags: str) -> MeasuredRun:
        """Run with these flags beside those that name the server.

        Raises:
            FeatureFailed: The run has no result, or one that says nothing.
        """
        stem = self.folder / f"run-{next(self.numbers)}"
        capture, records = f"{stem}.capture.jsonl", f"{stem}.records.jsonl"
        target = [
            "--base-url",
            self.server.base_url,
            "--model",
            self.server.model,
            "--tokenizer",
            self.real.tokenizer,
        ]
        kept = ["--capture", capture, "--records", records, "--json", "--quiet"]
        before = samples(self.server.base_url)
        done = loadgen("run", *target, "--temperature", "0", *flags, *kept, timeout_s=400)
        after = samples(self.server.base_url)
        if done.returncode:
            raise FeatureFailed(
                f"loadgen run {' '.join(flags)} ended with {done.returncode}: {done.stderr[-2000:]}"
            )
        lines = [json.loads(line) for line in Path(records).read_text().splitlines()[1:-1]]
        return MeasuredRun(
            json.loads(done.stdout),
            sorted(lines, key=lambda line: int(line["index"])),
            {answer.index: Golden("", answer, {}) for answer in capture.load(capture).responses},
            {name: value - before.get(name, 0.0) for name, value in after.items()},
        )

    def looked_up(self, run: MeasuredRun) -> tuple[float, float]:
        """Tokens that the server looked up in its prefix cache in a run, and those that it
        found, by its counters.
        """
        return sum(run.increases[name] for name in self.counters.looked_up), run.increases[
            self.counters.found
        ]


def samples(base_url: str) -> dict[str, float]:
    """Return every sample of a server's metrics, summed over labels.

    Raises:
        Unreachable: The server does not answer.
    """
    return summed(request(f"{base_url}/metrics").body.decode())


def summed(metrics: str) -> dict[str, float]:
    """Return every sample in Prometheus' text, summed over labels."""
    found: dict[str, float] = {}
    for sample in SAMPLE.finditer(metrics):
        found[sample["name"]] = found.get(sample["name"], 0.0) + float(sample["value"])
    return found
