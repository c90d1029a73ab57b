"""Protocols: `loadgen run` with each of its APIs against a real server, held to the bytes that
the server sent.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engines.engines import Real
from loadgen.core.record import Record
from loadgen.engines import Server
from loadgen.metrics.records.file import RecordFile
from tests.helpers.captured_responses import Golden, usage
from tests.helpers.command_line import loadgen

HEAD = (
    "engine",
    "version",
    "task",
    "`--backend`",
    "answered",
    "input tokens",
    "output tokens",
    "ended by",
    "notes",
)
OUTPUT_TOKENS = 24  # the tiny Qwen3 has ended its reasoning by then
PROMPTS = (
    "A ship sails across the wide blue ocean. Name three things that its sailors see at night.",
    "Write one line about a distant island, and one about the wind.",
    'Which old songs do sailors sing? Answer "briefly",\nplease: été, 海.',
)
DOCUMENTS = 3  # of each query
ABOUT_THE_ANSWERS = (
    "AEF"  # groups of checks; the others are about the machine, the times and the load
)
# A front end that waits for a busy CPU writes several tokens at once.
ABOUT_TIMES = frozenset({"median gap 0"})


class ProtocolFailed(Exception):
    """A run that says something else than the server, or less than it must."""


@dataclass(frozen=True)
class Protocol:
    """One API, and how it is asked.

    Attributes:
        backend: The API.
        task: What a server has to do: "generate", "embed" or "score".
        flags: Further flags of `loadgen run`.
        endless: Whether an answer would end by itself at once, because the model was trained on
            chats.
    """

    backend: str
    task: str = "generate"
    flags: tuple[str, ...] = ()
    endless: bool = False

    @property
    def name(self) -> str:
        """As the table has it."""
        return " ".join((self.backend, *self.flags))


PROTOCOLS = (
    Protocol("openai-chat"),
    Protocol("openai-chat", flags=("--disable-stream",)),
    Protocol("openai", endless=True),
    Protocol("openai", flags=("--prompt-token-ids",), endless=True),
    Protocol("openai-responses"),
    Protocol("anthropic"),
    Protocol("openai-embeddings", "embed"),
    Protocol("openai-embeddings-chat", "embed"),
    Protocol("vllm-pooling", "embed"),
    Protocol("vllm-rerank", "embed"),
    Protocol("vllm-rerank", "score"),
)


def protocol_table(name: str, real: Real, folder: Path) -> Iterator[tuple[str, ...]]:
    """Try each protocol that an engine serves, and yield a row of the table for each.

    Args:
        name: The engine's name in the table.
        real: The engine; one server is started for each task.
        folder: Where the files of the runs are left.

    Raises:
        ProtocolFailed: A run failed, or does not say what the server said.
        EngineFailed: A server does not start.
    """
    for task, raw in real.tasks.items():
        served = [
            each for each in PROTOCOLS if each.task == task and (task, each.name) not in real.lacks
        ]
        with real.case.begin(more=raw) as server:
            server.ready(real.case.ready_s)
            for protocol in served:
                yield (name, *run(real, server, protocol, folder))


def run(real: Real, server: Server, protocol: Protocol, folder: Path) -> tuple[str, ...]:
    """Run three requests, and hold what loadgen says of them to the usage in the captured bytes;
    return the row.
    """
    stem = "-".join((server.engine.name, protocol.task, *protocol.name.replace("--", "").split()))
    capture, records = folder / f"{stem}.jsonl", folder / f"{stem}.records.jsonl"
    flags = ["--base-url", server.base_url, "--backend", protocol.backend, "--model", server.model]
    flags += [
        "--tokenizer",
        real.tokenizer,
        "--max-concurrency",
        "1",
        *protocol.flags,
        *_asked(real, protocol, folder),
    ]
    done = loadgen(
        "run", *flags, "--capture", str(capture), "--records", str(records), "--json", timeout_s=400
    )
    if done.returncode:
        raise ProtocolFailed(
            f"{stem}: loadgen run ended with {done.returncode}: {done.stderr[-2000:]}"
        )
    result = json.loads(done.stdout)
    answers = [
        Golden(stem, answer, {"backend": protocol.backend})
        for answer in capture.load(str(capture)).responses
    ]
    kept = sorted(RecordFile(records), key=lambda record: record.index)
    problems = [*_problems(protocol, result, kept), *contradictions(answers, kept)]
    if problems:
        raise ProtocolFailed(f"{stem}: {'; '.join(problems)}")
    return _row(server, protocol, result, kept)


def _asked(real: Real, protocol: Protocol, folder: Path) -> list[str]:
    """Flags of the data set."""
    if protocol.backend == "vllm-rerank":
        return [
            *("--dataset-name", "random-rerank", "--random-input-len", "24"),
            *(
                "--random-batch-size",
                str(DOCUMENTS),
                "--num-prompts",
                str(len(PROMPTS) * DOCUMENTS),
            ),
        ]
    path = folder / "prompts.jsonl"
    rows = [{"prompt": prompt, "output_tokens": OUTPUT_TOKENS} for prompt in PROMPTS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    flags = [
        "--dataset-name",
        "jsonl",
        "--dataset-path",
        str(path),
        "--num-prompts",
        str(len(rows)),
    ]
    if protocol.task == "generate":
        flags += ["--temperature", "0"]
    if protocol.endless:
        flags += ["--extra-body", json.dumps(real.endless)]
    return flags


def _problems(
    protocol: Protocol, result: Mapping[str, Any], records: Sequence[Record]
) -> Iterable[str]:
    """What a result lacks that every one must have."""
    own = result["loadgen"]
    if own["outcomes"] != {"ok": len(PROMPTS)}:
        yield f"outcomes are {own['outcomes']}"
    for check in _failed(own):
        if check["counts"]:
            yield f"{check['name']}: {check['value']}, limit {check['limit']}"
    if sum(record.prompt_tokens for record in records) != result["total_input_tokens"]:
        yield f"{result['total_input_tokens']} input tokens in all"
    if "--prompt-token-ids" in protocol.flags and any(
        each.input_tokens != each.prompt_tokens for each in records
    ):
        yield "the server counts other input tokens than ids were sent"
    if not all(0 < record.sent <= record.first_byte <= record.closed for record in records):
        yield "a time is missing"
    if protocol.task == "generate":
        yield from _missing_tokens(protocol, result, records)
    elif any(
        record.results != (DOCUMENTS if protocol.backend == "vllm-rerank" else 1)
        for record in records
    ):
        yield f"{[record.results for record in records]} embeddings or scores"


def _missing_tokens(
    protocol: Protocol, result: Mapping[str, Any], records: Sequence[Record]
) -> Iterable[str]:
    """What a result lacks of the tokens that were generated."""
    if (source := result["loadgen"]["tokens"]["output_counted_by"]) != "usage":
        yield f"output tokens are counted by {source}"
    if sum(record.completion_tokens for record in records) != result["total_output_tokens"]:
        yield f"{result['total_output_tokens']} output tokens in all"
    if protocol.flags != ("--disable-stream",) and not all(
        record.sent < record.first_token <= record.last_token and record.tpot_ns is not None
        for record in records
    ):
        yield "the time of a token is missing"


def contradictions(answers: Sequence[Golden], records: Sequence[Record]) -> Iterable[str]:
    """Where loadgen's counts are not the server's."""
    if len(answers) != len(records):
        yield f"{len(answers)} captured responses to {len(records)} requests"
    for answer, record in zip(answers, records, strict=False):
        counts, found = usage(answer), (record.prompt_tokens, record.completion_tokens)
        if found != counts:
            yield (
                f"request {record.index}: counts are {found}, and the server's usage says {counts}"
            )


def _failed(own: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The checks about the answers that failed, notes among them."""
    failed = [
        check
        for check in own["checks"]
        if check["ok"] is False and check["group"] in ABOUT_THE_ANSWERS
    ]
    return [check for check in failed if check["name"] not in ABOUT_TIMES]


def _row(
    server: Server, protocol: Protocol, result: Mapping[str, Any], records: Sequence[Record]
) -> tuple[str, ...]:
    notes = [check["name"] for check in _failed(result["loadgen"])]
    generates = protocol.task == "generate"
    return (
        server.version() or server.engine.version() or "unknown",
        protocol.task,
        f"`{protocol.name}`",
        str(len(records)),
        str(result["total_input_tokens"]),
        str(result["total_output_tokens"]) if generates else "-",
        ", ".join(sorted({str(record.finish_reason) for record in records})) if generates else "-",
        ", ".join(notes) or "-",
    )
